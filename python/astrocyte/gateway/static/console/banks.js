// Banks with their health, and one bank.

import { bankPath, call, get } from "./api.js";
import { deleteButton } from "./deletion.js";
import { badge, decimal, el, empty, facts, field, instant, number, size, table } from "./dom.js";
import { paged } from "./pages.js";

const PAGE = 20;

export function bankLink(bankId) {
  return el("a", { href: `#bank/${encodeURIComponent(bankId)}` }, bankId);
}

// Health of a bank: its index holds all that the database holds, and nothing waits for an external store.
function health(stats) {
  if (!stats) return badge("not readable", "warn");
  if (stats.waiting_copies > 0) return badge(`${number(stats.waiting_copies)} copies wait`, "warn");
  if (!stats.index) return badge("index not loaded");
  const behind = stats.position - stats.indexed_position;
  return behind > 0 ? badge(`index ${number(behind)} behind`, "warn") : badge("healthy", "good");
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
            ["Bank", "Health", "Memories", "Forgotten", "Model", "Created"],
            rows.map(({ bank, stats }) => [
              el("span", {}, bankLink(bank.bank_id), bank.display_name ? el("small", {}, ` ${bank.display_name}`) : null),
              health(stats),
              stats ? number(stats.memory_count) : "–",
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
      el("a", { href: `#graph/${id}` }, "Entity graph"),
      el("a", { href: `#recall?bank=${id}` }, "Recall"),
      el("a", { href: `#operations?bank_id=${id}` }, "Operations"),
      el("a", { href: `#audit?bank_id=${id}` }, "Audit trail"),
      el("a", { href: `#holds?bank_id=${id}` }, "Legal holds"),
    ),
    el("h2", {}, "Health"),
    el("p", {}, health(stats)),
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

function statRows(stats) {
  const rows = [
    ["Memories", number(stats.memory_count)],
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
