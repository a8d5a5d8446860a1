// Wiki pages of a bank, a search in them, their problems, and one page with its citations and revisions.

import { bankPath, get, post } from "./api.js";
import { bankLink } from "./banks.js";
import { evidence, itemLink, revisions, section, stale } from "./documents.js";
import { badge, decimal, el, empty, facts, field, instant, number, table, words } from "./dom.js";
import { paged } from "./pages.js";

const PAGE = 50;
const KINDS = ["", "entity", "topic"];

export async function wikiPage({ parts: [bankId], params, signal }) {
  const query = params.get("query") ?? "";
  const [list, found] = await Promise.all([
    query ? hits(bankId, query, signal) : pageList(bankId, params, signal),
    problems(bankId, signal),
  ]);
  return [
    el("h1", {}, `Wiki of ${bankId}`),
    el("p", {}, "Bank: ", bankLink(bankId)),
    filter(bankId, params),
    list,
    el("h2", {}, "Problems"),
    found,
  ];
}

function filter(bankId, params) {
  const query = el("input", { type: "search", value: params.get("query") ?? "" });
  const kind = el(
    "select",
    {},
    KINDS.map((one) => el("option", { value: one, selected: one === (params.get("kind") ?? "") }, one || "any")),
  );
  return el(
    "form",
    {
      class: "filters",
      onsubmit: (event) => {
        event.preventDefault();
        const asked = new URLSearchParams({ query: query.value, kind: kind.value });
        location.hash = `wiki/${encodeURIComponent(bankId)}?${asked}`;
      },
    },
    field("Search in pages", query, "Empty: all pages."),
    field("Kind", kind, "Of the list."),
    el("button", { type: "submit" }, "Show"),
  );
}

function pageList(bankId, params, signal) {
  const kind = params.get("kind") ?? "";
  return paged(
    async (token) => {
      const page = await get(bankPath(bankId, "/pages"), { kind, page_size: PAGE, page_token: token }, signal);
      return { rows: page.pages, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("There is no page.")
        : table(
            "Pages",
            ["Page", "Kind", "Scope", "Writer", "Sources", "Revision", "Changed"],
            rows.map((one) => [
              el("span", {}, itemLink("page", bankId, one.page_id, one.title), " ", stale(one.is_stale)),
              words(one.kind),
              one.scope,
              words(one.writer),
              number(one.sources.length),
              number(one.revision),
              instant(one.updated_at),
            ]),
          ),
  );
}

async function hits(bankId, query, signal) {
  const told = await post(bankPath(bankId, "/pages:search"), { query, max_results: PAGE }, signal);
  if (told.hits.length === 0) return empty("No page matches.");
  return table(
    "Sections, best first",
    ["Page", "Section", "Text", "Relevance"],
    told.hits.map((one) => [
      itemLink("page", bankId, one.page_id, one.title),
      one.heading,
      el("span", { class: "text" }, one.text),
      decimal(one.relevance, 2),
    ]),
  );
}

function problems(bankId, signal) {
  return paged(
    async (token) => {
      const page = await get(bankPath(bankId, "/pages:lint"), { page_size: PAGE, page_token: token }, signal);
      return { rows: page.findings, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("None was found.")
        : table(
            "Problems of pages",
            ["Page", "Problem", "Detail"],
            rows.map((one) => [
              itemLink("page", bankId, one.page_id, one.page_id),
              badge(words(one.problem), "warn"),
              one.detail,
            ]),
          ),
  );
}

export async function pagePage({ parts: [bankId, itemId], signal }) {
  const path = bankPath(bankId, `/pages/${encodeURIComponent(itemId)}`);
  const [{ page }, history] = await Promise.all([get(path, {}, signal), revisions(path, signal)]);
  return [
    el("h1", {}, page.title),
    el(
      "p",
      {},
      el("code", {}, page.page_id),
      " in ",
      el("a", { href: `#wiki/${encodeURIComponent(bankId)}` }, `wiki of ${bankId}`),
      " ",
      stale(page.is_stale),
    ),
    el("article", { class: "panel document", "aria-label": "Content" }, page.sections.flatMap((one) => section(bankId, one))),
    facts([
      ["Kind", words(page.kind)],
      ["Scope", page.scope],
      ["Writer", words(page.writer)],
      ["Revision", number(page.revision)],
      ["Created", instant(page.created_at)],
      ["Changed", instant(page.updated_at)],
    ]),
    el("h2", {}, "Related pages"),
    related(bankId, page.links),
    el("h2", {}, "Sources"),
    evidence(bankId, page.sources),
    el("h2", {}, "Revisions"),
    history,
  ];
}

function related(bankId, links) {
  if (links.length === 0) return empty("No other page rests on the same memories.");
  return table(
    "Pages on the same memories",
    ["Page", "Memories on both"],
    links.map((one) => [itemLink("page", bankId, one.page_id, one.title), number(one.shared_count)]),
  );
}
