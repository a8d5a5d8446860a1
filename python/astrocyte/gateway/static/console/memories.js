// The memories of a bank, and one memory with its content at other instants.

import { ApiError, bankPath, get, post } from "./api.js";
import { deleteButton } from "./deletion.js";
import { badge, el, empty, facts, field, instant, number, table, tags, words } from "./dom.js";
import { bankLink } from "./banks.js";
import { paged } from "./pages.js";

const PAGE = 50;
const PREVIEW = 160;
// A query of the whole content could be beyond the limit of a query.
const QUERY = 500;

export function memoryLink(bankId, memoryId, text = memoryId) {
  return el("a", { href: `#memory/${encodeURIComponent(bankId)}/${encodeURIComponent(memoryId)}` }, text);
}

function preview(text) {
  return text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text || "(no text)";
}

export function splitList(text) {
  return text.split(",").map((one) => one.trim()).filter(Boolean);
}

export async function memoriesPage({ parts: [bankId], params, signal }) {
  const chosen = { tags: params.get("tags") ?? "", session_id: params.get("session_id") ?? "" };
  const tagInput = el("input", { type: "search", value: chosen.tags });
  const sessionInput = el("input", { type: "search", value: chosen.session_id });
  const archived = params.get("archived") === "true";
  const archivedBox = el("input", { type: "checkbox", checked: archived });
  const form = el(
    "form",
    {
      class: "filters",
      onsubmit: (event) => {
        event.preventDefault();
        const query = new URLSearchParams({ tags: tagInput.value, session_id: sessionInput.value });
        if (archivedBox.checked) query.set("archived", "true");
        location.hash = `memories/${encodeURIComponent(bankId)}?${query}`;
      },
    },
    field("Tags", tagInput, "Separated by commas; any of them."),
    field("Conversation", sessionInput),
    field("Archived", archivedBox),
    el("button", { type: "submit" }, "Filter"),
  );
  let total = 0;
  const list = await paged(
    async (token) => {
      const filters = { tags: splitList(chosen.tags), session_id: chosen.session_id, archived };
      const page = await get(bankPath(bankId, "/memories"), { ...filters, page_size: PAGE, page_token: token }, signal);
      total = page.total_size;
      return { rows: page.memories, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("No memory matches.")
        : table(
            `${number(rows.length)} of ${number(total)} ${archived ? "archived " : ""}memories, oldest first`,
            ["Content", "Type", "Tags", "Version", "Happened", "Retained", ...(archived ? ["Archived"] : [])],
            rows.map((memory) => [
              memoryLink(bankId, memory.memory_id, preview(memory.content)),
              memory.fact_type,
              tags(memory.tags),
              String(memory.version),
              instant(memory.occurred_at),
              instant(memory.retained_at),
              ...(archived ? [el("span", {}, instant(memory.archived_at), ` ${words(memory.archive_reason)}`)] : []),
            ]),
          ),
  );
  return [el("h1", {}, `Memories of ${bankId}`), el("p", {}, "Bank: ", bankLink(bankId)), form, list];
}

export async function memoryPage({ parts: [bankId, memoryId], signal }) {
  const { memory } = await get(bankPath(bankId, `/memories/${encodeURIComponent(memoryId)}`), {}, signal);
  const metadata = Object.entries(memory.metadata);
  return [
    el("h1", {}, "Memory"),
    el("p", {}, el("code", {}, memory.memory_id), " in ", bankLink(bankId)),
    el("pre", { class: "content", tabindex: "0", "aria-label": "Content" }, memory.content),
    facts([
      ["Version", String(memory.version)],
      ["Type", `${memory.fact_type}, ${memory.memory_layer}`],
      ["Tags", tags(memory.tags)],
      ["Retained", el("span", {}, instant(memory.retained_at), ` by ${memory.principal}`)],
      ["This version", instant(memory.updated_at)],
      ["Happened", instant(memory.occurred_at)],
      ["Valid", el("span", {}, instant(memory.valid_from), " to ", instant(memory.valid_until))],
      ["Speaker", memory.speaker || "–"],
      ["Conversation", memory.session_id || "–"],
      ["Source", memory.source || "–"],
      ...(memory.archived_at ? [["Archived", archiving(bankId, memory)]] : []),
      ["Size", `${number(memory.token_count)} tokens, ${number(memory.chunk_count)} chunks`],
      ["Entities", memory.entities.length ? memory.entities.map((one) => one.name).join(", ") : "–"],
    ]),
    el("h2", {}, "Metadata"),
    metadata.length
      ? table("Metadata", ["Key", "Value"], metadata.map(([name, value]) => [name, JSON.stringify(value)]))
      : empty("There is none."),
    ...versions(bankId, memory),
    deleteButton({
      label: "Forget memory",
      name: memory.memory_id,
      explanation: "The memory is absent from every answer from now on. It can be undeleted until it is purged.",
      withReason: true,
      act: (reason) => post("/v1/forget", { bank_id: bankId, memory_ids: [memoryId], reason }),
      done: () => (location.hash = `memories/${encodeURIComponent(bankId)}`),
    }),
  ].filter(Boolean);
}

function archiving(bankId, memory) {
  const other = memory.merged_into ? el("span", {}, ", same as ", memoryLink(bankId, memory.merged_into)) : null;
  return el("span", {}, instant(memory.archived_at), ` ${words(memory.archive_reason)}`, other);
}

// The content at an instant: earlier versions are read by a recall of this memory alone.
function versions(bankId, memory) {
  const input = el("input", { type: "datetime-local", step: "1", required: true, value: local(memory.updated_at) });
  const result = el("div", { "aria-live": "polite" });
  const show = async (asOf) => {
    const asked = {
      bank_id: bankId,
      query: memory.content.slice(0, QUERY).trim() || memory.memory_id,
      memory_ids: [memory.memory_id],
      as_of: asOf,
      detail_level: "full",
      max_results: 1,
      include_trace: false,
    };
    try {
      const { hits: [hit] } = await post("/v1/recall", asked);
      result.replaceChildren(
        el("p", {}, badge(hit ? `version ${hit.version}` : "not there yet"), " at ", instant(asOf)),
        ...(hit ? [el("pre", { class: "content", tabindex: "0", "aria-label": "Content then" }, hit.text)] : []),
      );
    } catch (error) {
      const text = error instanceof ApiError ? error.message : "The server cannot be reached.";
      result.replaceChildren(el("p", { class: "error", role: "alert" }, text));
    }
  };
  // The store counts milliseconds: a version that was replaced within its first one was current at no instant.
  const before = () => show(new Date(Date.parse(memory.updated_at) - 1).toISOString());
  return [
    el("h2", {}, "Versions"),
    el(
      "form",
      {
        class: "filters",
        onsubmit: (event) => {
          event.preventDefault();
          show(new Date(input.value).toISOString());
        },
      },
      field("As of", input, "In your time zone."),
      el("button", { type: "submit" }, "Show"),
      memory.version > 1 ? el("button", { type: "button", onclick: before }, `Show version ${memory.version - 1}`) : null,
    ),
    memory.version === 1 ? empty("This is the first version.") : null,
    result,
  ].filter(Boolean);
}

// An instant as the value of a datetime-local input.
function local(text) {
  const date = new Date(text);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
