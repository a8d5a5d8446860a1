// Long-running operations and the audit trail.

import { get } from "./api.js";
import { badge, el, empty, field, instant, number, table, words } from "./dom.js";
import { paged } from "./pages.js";

const PAGE = 50;
const EFFECTS = {
  lifecycle: [
    ["unused", "archived as unused"],
    ["expired", "archived by age"],
    ["merged", "archived as duplicates"],
    ["deleted", "forgotten"],
    ["held", "held"],
    ["entities", "entities deleted"],
  ],
  consolidation: [
    ["created", "created"],
    ["updated", "updated"],
    ["superseded", "superseded"],
    ["deleted", "deleted"],
  ],
};
const KINDS = { succeeded: "good", failed: "bad", cancelled: "warn" };

export function bankFilter(page, bankId, ...more) {
  const input = el("input", { type: "search", value: bankId });
  return el(
    "form",
    {
      class: "filters",
      onsubmit: (event) => {
        event.preventDefault();
        const query = new URLSearchParams(input.value ? { bank_id: input.value } : {});
        for (const control of more) if (control.control.checked) query.set(control.name, "true");
        location.hash = `${page}?${query}`;
      },
    },
    field("Bank", input, "Empty: all banks."),
    more.map(({ control, label }) => field(label, control)),
    el("button", { type: "submit" }, "Filter"),
  );
}

export async function operationsPage({ params, signal }) {
  const bankId = params.get("bank_id") ?? "";
  const asked = { bank_id: bankId, page_size: PAGE, newest_first: true };
  const list = await paged(
    async (token) => {
      const page = await get("/v1/operations", { ...asked, page_token: token }, signal);
      return { rows: page.operations, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("There is no operation.")
        : table(
            "Operations, newest first",
            ["Operation", "Bank", "Kind", "State", "Progress", "Started", "Ended", "Result"],
            rows.map((one) => [
              el("code", {}, one.operation_id),
              one.bank_id,
              kind(one),
              badge(words(one.state), KINDS[one.state] ?? ""),
              progress(one),
              el("span", {}, instant(one.created_at), ` by ${one.created_by}`),
              instant(one.ended_at),
              one.error ? one.error.message : counts(one),
            ]),
          ),
  );
  return [el("h1", {}, "Operations"), bankFilter("operations", bankId), list];
}

function kind(operation) {
  if (operation.reindex) return operation.reindex.rollback ? "reindex, back" : "reindex";
  if (operation.lifecycle) return operation.lifecycle.dry_run ? "lifecycle, dry run" : "lifecycle";
  return operation.consolidation ? "consolidation" : "–";
}

function progress({ reindex, lifecycle, consolidation }) {
  if (reindex) return `${words(reindex.phase)}, ${number(reindex.embedded)} of ${number(reindex.total)} versions`;
  const other = lifecycle ?? consolidation;
  return other ? `${number(other.seen)} of ${number(other.total)} ${lifecycle ? "memories" : "changes"}` : "–";
}

// The effect so far; counts of zero are left out.
function counts({ reindex, lifecycle, consolidation }) {
  if (reindex) return `${reindex.from_model} to ${reindex.to_model}`;
  const told = lifecycle ? EFFECTS.lifecycle : EFFECTS.consolidation;
  const from = lifecycle ?? consolidation ?? {};
  const pairs = told.filter(([name]) => from[name] > 0).map(([name, text]) => `${number(from[name])} ${text}`);
  return pairs.join(", ") || "no change";
}

export async function auditPage({ params, signal }) {
  const bankId = params.get("bank_id") ?? "";
  const asked = { bank_id: bankId, page_size: PAGE, newest_first: true };
  let head = 0;
  const list = await paged(
    async (token) => {
      const page = await get("/v1/audit", { ...asked, page_token: token }, signal);
      head = page.head_sequence;
      return { rows: page.events, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("There is no event.")
        : table(
            `Events, newest first; the chain ends at ${number(head)}`,
            ["Event", "Number", "When", "By", "Details"],
            rows.map((one) => [
              words(one.event),
              number(one.sequence),
              instant(one.occurred_at),
              one.actor,
              details(one.details),
            ]),
          ),
  );
  return [el("h1", {}, "Audit trail"), bankFilter("audit", bankId), list];
}

function details(values) {
  const pairs = Object.entries(values);
  return pairs.length ? el("ul", { class: "plain" }, pairs.map(([name, value]) => el("li", {}, `${name}: ${value}`))) : "–";
}
