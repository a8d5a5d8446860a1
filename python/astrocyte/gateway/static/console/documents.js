// Parts of pages that show texts with their sources and revisions: mental models, observations and wiki pages.

import { get } from "./api.js";
import { badge, el, empty, instant, number, table, words } from "./dom.js";
import { memoryLink } from "./memories.js";
import { paged } from "./pages.js";

const PAGE = 50;

export function itemLink(page, bankId, itemId, text) {
  return el("a", { href: `#${page}/${encodeURIComponent(bankId)}/${encodeURIComponent(itemId)}` }, text);
}

export function stale(isStale) {
  return isStale ? badge("a source changed", "warn") : null;
}

export function section(bankId, { heading, blocks }) {
  return [el("h2", {}, heading), ...blocks.map((one) => block(bankId, one))];
}

function block(bankId, one) {
  const items = () => one.items.map((item) => el("li", {}, item));
  const shapes = {
    bullet_list: () => el("ul", {}, items()),
    ordered_list: () => el("ol", {}, items()),
    code: () => el("pre", { class: "code", tabindex: "0", "aria-label": "Code" }, one.text),
    paragraph: () => el("p", { class: "text" }, one.text),
  };
  const cited = one.source_ids.map((id, index) => el("span", {}, " ", memoryLink(bankId, id, `memory ${index + 1}`)));
  return el("div", {}, shapes[one.kind](), cited.length ? el("p", { class: "cited" }, "From", cited) : null);
}

export function evidence(bankId, sources) {
  if (sources.length === 0) return empty("It rests on no memory.");
  return table(
    "Memories",
    ["Memory", "Version", "Happened", "State"],
    sources.map((one) => [
      memoryLink(bankId, one.memory_id),
      number(one.version),
      instant(one.observed_at),
      one.is_changed ? badge("changed since", "warn") : badge("as cited", "good"),
    ]),
  );
}

export function revisions(path, signal, more = () => null) {
  return paged(
    async (token) => {
      const page = await get(`${path}/revisions`, { page_size: PAGE, page_token: token }, signal);
      return { rows: page.revisions, next: page.next_page_token };
    },
    (rows) =>
      el(
        "div",
        {},
        table(
          "Revisions, newest first",
          ["Revision", "Cause", "When", "By", "Sources", "Text"],
          rows.map((one) => [
            number(one.revision),
            words(one.cause),
            instant(one.changed_at),
            one.changed_by,
            number(one.source_ids.length),
            el("span", { class: "text" }, one.text),
          ]),
        ),
        more(path, rows, signal),
      ),
  );
}
