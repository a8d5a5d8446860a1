// Banks with their health, and one bank.

import { bankPath, call, get } from "./api.js";
import { deleteButton } from "./deletion.js";
import { badge, decimal, el, empty, facts, field, instant, number, size, table, whole, words } from "./dom.js";
import { paged } from "./pages.js";

const PAGE = 20;
const STATUSES = { healthy: "good", warning: "warn", critical: "bad" };

export function bankLink(bankId) {
  return el("a", { href: `#bank/${encodeURIComponent(bankId)}` }, bankId);
}

// The server's assessment of the calls on a bank. The score of a bank without calls says nothing.
function health(stats) {
  if (!stats) return badge("not readable", "warn");
  const { health: told } = stats;
  if (!told) return badge("not assessed");
  const { metrics } = told;
  if (metrics.retain_count + metrics.recall_count + metrics.reflect_count === 0) return badge("no calls yet");
  return el(
    "span",
    {},
    badge(`${words(told.status)} ${decimal(told.score, 2)}`, STATUSES[told.status]),
    told.issues.map((one) => badge(words(one.code), STATUSES[one.severity])),
  );
}

// How far the index and external stores are behind the database.
function copies(stats) {
  if (!stats) return "–";
  if (stats.waiting_copies > 0) return badge(`${number(stats.waiting_copies)} copies wait`, "warn");
  if (!stats.index) return badge("not loaded");
  const behind = stats.position - stats.indexed_position;
  return behind > 0 ? badge(`${number(behind)} behind`, "warn") : badge("current", "good");
}

async function statsOf(bankId, signal) {
  try {
    return (await get(bankPath(bankId, "/stats"), {}, signal)).stats;
  } catch (error) {
    if (error.status === 403 || error.status === 404) return null;
    throw error;
  }
}

export async function banksPage({ params, signal }) {
  const prefix = params.get("prefix") ?? "";
  const input = el("input", { type: "search", value: prefix });
  const form = el(
    "form",
    {
      class: "filters",
      onsubmit: (event) => {
        event.preventDefault();
        location.hash = `banks?${new URLSearchParams({ prefix: input.value })}`;
      },
    },
    field("Ids that begin with", input),
    el("button", { type: "submit" }, "Filter"),
  );
  const list = await paged(
    async (token) => {
      const page = await get("/v1/banks", { prefix, page_size: PAGE, page_token: token }, signal);
      const rows = await Promise.all(page.banks.map(async (bank) => ({ bank, stats: await statsOf(bank.bank_id, signal) })));
      return { rows, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("There is no bank that you may read.")
        : table(
            "Banks",
            ["Bank", "Health", "Index", "Memories", "Archived", "Forgotten", "Model", "Created"],
            rows.map(({ bank, stats }) => [
              el("span", {}, bankLink(bank.bank_id), bank.display_name ? el("small", {}, ` ${bank.display_name}`) : null),
              health(stats),
              copies(stats),
              stats ? number(stats.memory_count) : "–",
              stats ? number(stats.archived_count) : "–",
              stats ? number(stats.forgotten_count) : "–",
              bank.embedding_model,
              instant(bank.created_at),
            ]),
          ),
  );
  return [el("h1", {}, "Banks"), form, list];
}

export async function bankPage({ parts: [bankId], signal }) {
  const [{ bank }, stats] = await Promise.all([get(bankPath(bankId), {}, signal), statsOf(bankId, signal)]);
  const id = encodeURIComponent(bankId);
  return [
    el("h1", {}, bank.bank_id),
    bank.description ? el("p", {}, bank.description) : null,
    el(
      "p",
      { class: "links" },
      el("a", { href: `#memories/${id}` }, "Memories"),
      el("a", { href: `#knowledge/${id}` }, "Knowledge"),
      el("a", { href: `#wiki/${id}` }, "Wiki"),
      el("a", { href: `#graph/${id}` }, "Entity graph"),
      el("a", { href: `#recall?bank=${id}` }, "Recall"),
      el("a", { href: `#operations?bank_id=${id}` }, "Operations"),
      el("a", { href: `#audit?bank_id=${id}` }, "Audit trail"),
      el("a", { href: `#holds?bank_id=${id}` }, "Legal holds"),
    ),
    el("h2", {}, "Health"),
    ...assessment(stats),
    el("h2", {}, "Index and numbers"),
    stats ? el("p", {}, copies(stats)) : null,
    stats ? facts(statRows(stats)) : empty("Statistics need the permission to read."),
    el("h2", {}, "Bank"),
    facts([
      ["Display name", bank.display_name || "–"],
      ["Embedding model", `${bank.embedding_model}, ${number(bank.dimensions)} dimensions`],
      ["Created", el("span", {}, instant(bank.created_at), ` by ${bank.created_by}`)],
      ["Changed", instant(bank.updated_at)],
      ["Template", bank.template || "–"],
      ["Profile", bank.profile || "–"],
    ]),
    deleteButton({
      label: "Delete bank",
      name: bank.bank_id,
      explanation: "The bank and all its memories are deleted. It cannot be undone.",
      act: () => call("DELETE", bankPath(bankId), { params: { etag: bank.etag } }),
      done: () => (location.hash = "banks"),
    }),
  ].filter(Boolean);
}

// The health of a bank: its issues with advice, and the rates that it is made of.
function assessment(stats) {
  const told = stats?.health;
  if (!told) return [el("p", {}, health(stats))];
  const { metrics } = told;
  return [
    el("p", {}, health(stats), el("span", { class: "faint" }, " Calls of the last 14 days, since the server started.")),
    told.issues.length
      ? table(
          "Issues",
          ["Issue", "Severity", "Rate", "Advice"],
          told.issues.map((one) => [
            whole(words(one.code)),
            badge(words(one.severity), STATUSES[one.severity]),
            one.message,
            one.recommendation,
          ]),
        )
      : empty("There is no issue."),
    facts([
      ["Retained, recalls, reflects", `${number(metrics.retain_count)}, ${number(metrics.recall_count)}, ${number(metrics.reflect_count)}`],
      ["Recalls with hits", percent(metrics.recall_hit_rate)],
      ["Mean confidence of recalls", decimal(metrics.avg_recall_score, 2)],
      ["Retained duplicates", percent(metrics.dedup_rate)],
      ["Reflects with an answer", percent(metrics.reflect_success_rate)],
      ["Mean length", metrics.avg_content_length === undefined ? "–" : `${number(Math.round(metrics.avg_content_length))} characters`],
    ]),
  ];
}

function percent(share) {
  return share === undefined ? "–" : `${decimal(100 * share, 1)} %`;
}

function statRows(stats) {
  const rows = [
    ["Memories", number(stats.memory_count)],
    ["Archived", number(stats.archived_count)],
    ["Chunks", number(stats.chunk_count)],
    ["Tokens", number(stats.token_count)],
    ["Forgotten, not yet purged", number(stats.forgotten_count)],
    ["Position", `${number(stats.indexed_position)} of ${number(stats.position)} indexed`],
    ["Index in memory", size(stats.index_bytes)],
    ["Copies that wait for an external store", number(stats.waiting_copies)],
  ];
  if (!stats.index) return rows;
  return [
    ...rows,
    ["Rows, and dead rows", `${number(stats.index.rows)}, ${number(stats.index.dead_rows)}`],
    ["Terms", number(stats.index.terms)],
    ["Rows in graphs", number(stats.index.graph_rows)],
    ["Sampled recall of graphs", decimal(stats.index.sampled_recall)],
  ];
}
