// The entity graph of a bank: entities, and a drawing of what is around one of them.

import { bankPath, get, post } from "./api.js";
import { bankLink } from "./banks.js";
import { draw } from "./drawing.js";
import { badge, decimal, el, empty, facts, field, instant, number, table, whole, words } from "./dom.js";
import { memoryLink } from "./memories.js";
import { paged } from "./pages.js";

const PAGE = 50;
const FOUND = 20;
// Entities and memories around one: more would not be told apart in the drawing.
const AROUND = 60;
// Types of links that are counted in a line, the most frequent ones.
const TYPES = 8;
const DEPTHS = [1, 2, 3];

function graphAddress(bankId, entityId = "", depth = "") {
  const query = new URLSearchParams();
  if (entityId) query.set("entity", entityId);
  if (depth) query.set("depth", depth);
  return `#graph/${encodeURIComponent(bankId)}${query.size ? `?${query}` : ""}`;
}

export async function graphPage({ parts: [bankId], params, signal }) {
  const entityId = params.get("entity");
  const query = params.get("query") ?? "";
  const title = el("h1", {}, `Entity graph of ${bankId}`);
  const top = [title, el("p", {}, "Bank: ", bankLink(bankId)), searchForm(bankId, query)];
  if (entityId) return [...top, ...(await around(bankId, entityId, Number(params.get("depth")) || 2, signal))];
  if (query) return [...top, await found(bankId, query, signal)];
  return [...top, ...(await all(bankId, signal))];
}

function searchForm(bankId, query) {
  const input = el("input", { type: "search", value: query, required: true });
  return el(
    "form",
    {
      class: "filters",
      onsubmit: (event) => {
        event.preventDefault();
        location.hash = `graph/${encodeURIComponent(bankId)}?${new URLSearchParams({ query: input.value })}`;
      },
    },
    field("Name", input),
    el("button", { type: "submit" }, "Search"),
  );
}

function entityTable(caption, bankId, entities) {
  return table(
    caption,
    ["Entity", "Type", "Also called", "Mentions", "Last seen"],
    entities.map((one) => [
      el("a", { href: graphAddress(bankId, one.id) }, one.name),
      whole(words(one.entity_type.toLowerCase())),
      one.aliases.join(", ") || "–",
      number(one.mention_count),
      instant(one.last_seen),
    ]),
  );
}

async function found(bankId, query, signal) {
  const { entities } = await post("/v1/graph/search", { bank_id: bankId, query, limit: FOUND }, signal);
  return entities.length
    ? entityTable(`Entities found, best first`, bankId, entities)
    : empty("No entity has such a name.");
}

async function all(bankId, signal) {
  const { stats } = await get(bankPath(bankId, "/graph"), {}, signal);
  const list = await paged(
    async (token) => {
      const page = await get(bankPath(bankId, "/entities"), { page_size: PAGE, page_token: token }, signal);
      return { rows: page.entities, next: page.next_page_token };
    },
    (rows) => (rows.length ? entityTable("Entities, by id", bankId, rows) : empty("The memories name no entity.")),
  );
  return [
    el(
      "p",
      {},
      badge(`${number(stats.entities)} entities`),
      badge(`${number(stats.mentions)} mentions`),
      Object.entries(stats.links_by_type)
        .sort(([, one], [, other]) => other - one)
        .slice(0, TYPES)
        .map(([type, count]) => badge(`${words(type)}: ${number(count)}`)),
      stats.pending_memories > 0 ? badge(`${number(stats.pending_memories)} memories not yet in the graph`, "warn") : null,
      stats.rebuilding ? badge("is being rebuilt", "warn") : null,
    ),
    list,
  ];
}

async function around(bankId, entityId, depth, signal) {
  const asked = { bank_id: bankId, entity_ids: [entityId], max_depth: depth, limit: AROUND };
  const path = bankPath(bankId, `/entities/${encodeURIComponent(entityId)}`);
  const [{ entity }, near] = await Promise.all([get(path, {}, signal), post("/v1/graph/neighbors", asked, signal)]);
  const others = near.entities.filter((one) => one.depth > 0);
  return [
    el("h2", {}, entity.name),
    depthChoice(bankId, entityId, depth),
    others.length
      ? el("figure", {}, draw(entity, near.entities, (one) => graphAddress(bankId, one.id)), caption(near))
      : empty("Nothing is linked with it."),
    entityFacts(entity),
    others.length ? linkTable(bankId, near.entities, others) : null,
    near.memories.length ? memoryTable(bankId, near.memories) : empty("No memory is near."),
  ].filter(Boolean);
}

function depthChoice(bankId, entityId, chosen) {
  const links = DEPTHS.map((depth) =>
    el(
      "a",
      { href: graphAddress(bankId, entityId, depth), "aria-current": depth === chosen ? "true" : null },
      depth === 1 ? "1 step" : `${depth} steps`,
    ),
  );
  return el("p", { class: "choice", role: "group", "aria-label": "Distance" }, links);
}

function caption(near) {
  const cut = near.truncated ? " There is more around it than is shown." : "";
  return el(
    "figcaption",
    { class: "faint" },
    `A line is a link; a dashed one joins names of one memory. The tables below have all that is drawn.${cut}`,
  );
}

function entityFacts(entity) {
  const metadata = Object.entries(entity.metadata);
  return facts([
    ["Id", el("code", {}, entity.id)],
    ["Type", words(entity.entity_type.toLowerCase())],
    ["Also called", entity.aliases.join(", ") || "–"],
    ["Merged with", entity.merged_ids.join(", ") || "–"],
    ["Mentions", number(entity.mention_count)],
    ["First seen", instant(entity.first_seen)],
    ["Last seen", instant(entity.last_seen)],
    ["Metadata", metadata.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ") || "–"],
  ]);
}

function linkTable(bankId, entities, others) {
  const names = new Map(entities.flatMap(({ entity }) => [entity.id, ...entity.merged_ids].map((id) => [id, entity.name])));
  const name = (id) => names.get(id) ?? id;
  return table(
    `${number(others.length)} entities around it, nearest first`,
    ["Entity", "Type", "Steps", "Link", "Origin", "Confidence", "Evidence"],
    others.map(({ entity, depth, via }) => [
      el("a", { href: graphAddress(bankId, entity.id) }, entity.name),
      whole(words(entity.entity_type.toLowerCase())),
      number(depth),
      via ? `${name(via.entity_a)} ${words(via.link_type)} ${name(via.entity_b)}` : "–",
      via ? whole(words(via.origin)) : "–",
      via ? decimal(via.confidence, 2) : "–",
      via?.evidence || "–",
    ]),
  );
}

function memoryTable(bankId, memories) {
  return table(
    "Memories near it",
    ["Memory", "Steps", "Activation"],
    memories.map((one) => [memoryLink(bankId, one.memory_id, one.text), number(one.depth), decimal(one.score)]),
  );
}
