// Directives, mental models and observations of a bank, and single ones with their sources and revisions.

import { bankPath, call, get } from "./api.js";
import { bankLink } from "./banks.js";
import { deleteButton } from "./deletion.js";
import { evidence, itemLink, revisions, section, stale } from "./documents.js";
import { badge, decimal, el, empty, facts, field, instant, number, table, whole, words } from "./dom.js";
import { paged } from "./pages.js";

const PAGE = 50;
const TRENDS = ["", "new", "strengthening", "stable", "weakening", "stale"];
const TREND_KINDS = { new: "good", strengthening: "good", weakening: "warn", stale: "bad" };

export async function knowledgePage({ parts: [bankId], params, signal }) {
  const [rules, models, form, observations] = await Promise.all([
    directives(bankId, signal),
    mentalModels(bankId, signal),
    observationFilter(bankId, params),
    observationList(bankId, params, signal),
  ]);
  return [
    el("h1", {}, `Knowledge of ${bankId}`),
    el("p", {}, "Bank: ", bankLink(bankId)),
    el("h2", {}, "Directives"),
    rules,
    el("h2", {}, "Mental models"),
    models,
    el("h2", {}, "Observations"),
    form,
    observations,
  ];
}

function directives(bankId, signal) {
  return paged(
    async (token) => {
      const page = await get(bankPath(bankId, "/directives"), { page_size: PAGE, page_token: token }, signal);
      return { rows: page.directives, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("There is no directive.")
        : table(
            "Rules for answers, the highest priority first",
            ["Rule", "Priority", "Scope", "Written"],
            rows.map((one) => [
              one.rule_text,
              number(one.priority),
              one.scope,
              el("span", {}, instant(one.created_at), ` by ${one.created_by}`),
            ]),
          ),
  );
}

function mentalModels(bankId, signal) {
  return paged(
    async (token) => {
      const page = await get(bankPath(bankId, "/mentalModels"), { page_size: PAGE, page_token: token }, signal);
      return { rows: page.models, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("There is no mental model.")
        : table(
            "Mental models, oldest first",
            ["Model", "Sections", "Scope", "Sources", "Revision", "Changed"],
            rows.map((one) => [
              el("span", {}, itemLink("model", bankId, one.model_id, one.name), " ", stale(one.is_stale)),
              number(one.sections.length),
              one.scope,
              number(one.sources.length),
              number(one.revision),
              instant(one.updated_at),
            ]),
          ),
  );
}

function observationFilter(bankId, params) {
  const text = el("input", { type: "search", value: params.get("text") ?? "" });
  const trend = el(
    "select",
    {},
    TRENDS.map((one) => el("option", { value: one, selected: one === (params.get("trend") ?? "") }, one || "any")),
  );
  return el(
    "form",
    {
      class: "filters",
      onsubmit: (event) => {
        event.preventDefault();
        const query = new URLSearchParams({ text: text.value, trend: trend.value });
        location.hash = `knowledge/${encodeURIComponent(bankId)}?${query}`;
      },
    },
    field("Words", text),
    field("Trend", trend),
    el("button", { type: "submit" }, "Filter"),
  );
}

function observationList(bankId, params, signal) {
  const filters = { text: params.get("text") ?? "", trend: params.get("trend") ?? "" };
  return paged(
    async (token) => {
      const asked = { ...filters, page_size: PAGE, page_token: token };
      const page = await get(bankPath(bankId, "/observations"), asked, signal);
      return { rows: page.observations, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("No observation matches.")
        : table(
            "Observations, oldest first",
            ["Observation", "Kind", "Trend", "Sources", "Confidence", "Valid"],
            rows.map((one) => [
              el("span", {}, itemLink("observation", bankId, one.observation_id, one.text), " ", stale(one.is_stale)),
              whole(words(one.kind)),
              badge(words(one.trend), TREND_KINDS[one.trend] ?? ""),
              number(one.proof_count),
              decimal(one.confidence, 2),
              validity(bankId, one),
            ]),
          ),
  );
}

function validity(bankId, one) {
  if (!one.valid_from && !one.valid_until && !one.superseded_by) return "always";
  return el(
    "span",
    {},
    one.valid_from ? el("span", {}, "from ", instant(one.valid_from), " ") : null,
    one.valid_until ? el("span", {}, "until ", instant(one.valid_until), " ") : null,
    one.superseded_by ? itemLink("observation", bankId, one.superseded_by, "superseded") : null,
  );
}

export async function observationPage({ parts: [bankId, itemId], signal }) {
  const path = bankPath(bankId, `/observations/${encodeURIComponent(itemId)}`);
  const [{ observation: one }, history] = await Promise.all([get(path, {}, signal), revisions(path, signal)]);
  return [
    el("h1", {}, "Observation"),
    el("p", {}, el("code", {}, one.observation_id), " in ", knowledgeLink(bankId)),
    el("pre", { class: "content", tabindex: "0", "aria-label": "Text" }, one.text),
    facts([
      ["Kind", words(one.kind)],
      ["Trend", badge(words(one.trend), TREND_KINDS[one.trend] ?? "")],
      ["Confidence", decimal(one.confidence, 2)],
      ["Scope", one.scope],
      ["Valid", validity(bankId, one)],
      ["Created", el("span", {}, instant(one.created_at), ` by ${one.created_by}`)],
      ["Changed", instant(one.updated_at)],
    ]),
    el("h2", {}, "Evidence"),
    evidence(bankId, one.evidence),
    el("h2", {}, "Revisions"),
    history,
    deleteButton({
      label: "Delete observation",
      name: one.observation_id,
      explanation: "The observation and its revisions are deleted. It cannot be undone; its memories stay.",
      act: () => call("DELETE", path),
      done: () => (location.hash = `knowledge/${encodeURIComponent(bankId)}`),
    }),
  ].filter(Boolean);
}

export async function modelPage({ parts: [bankId, itemId], signal }) {
  const path = bankPath(bankId, `/mentalModels/${encodeURIComponent(itemId)}`);
  const [{ model }, history] = await Promise.all([get(path, {}, signal), revisions(path, signal, differences)]);
  return [
    el("h1", {}, model.name),
    el("p", {}, el("code", {}, model.model_id), " in ", knowledgeLink(bankId), " ", stale(model.is_stale)),
    el("article", { class: "panel document", "aria-label": "Content" }, model.sections.flatMap((one) => section(bankId, one))),
    facts([
      ["Revision", number(model.revision)],
      ["Scope", model.scope],
      ["Created", el("span", {}, instant(model.created_at), ` by ${model.created_by}`)],
      ["Changed", instant(model.updated_at)],
    ]),
    el("h2", {}, "Sources"),
    evidence(bankId, model.sources),
    el("h2", {}, "Revisions"),
    history,
    deleteButton({
      label: "Delete mental model",
      name: model.model_id,
      explanation: "The model is hidden, and can be undeleted until it is purged.",
      act: () => call("DELETE", path),
      done: () => (location.hash = `knowledge/${encodeURIComponent(bankId)}`),
    }),
  ].filter(Boolean);
}

function knowledgeLink(bankId) {
  return el("a", { href: `#knowledge/${encodeURIComponent(bankId)}` }, `knowledge of ${bankId}`);
}

// The difference of the newest revision to the one before.
function differences(path, rows, signal) {
  if (rows.length < 2) return null;
  const [after, before] = rows;
  const place = el("div", { "aria-live": "polite" });
  const show = async () => {
    const asked = { from_revision: before.revision, to_revision: after.revision };
    try {
      const told = await get(`${path}/revisions:diff`, asked, signal);
      place.replaceChildren(
        el("pre", { class: "content code", tabindex: "0", "aria-label": "Difference" }, told.unified_diff || "No difference."),
      );
    } catch (error) {
      place.replaceChildren(el("p", { class: "error", role: "alert" }, error.message));
    }
  };
  const label = `Show what revision ${after.revision} changed`;
  return el("div", {}, el("button", { type: "button", class: "quiet", onclick: show }, label), place);
}
