// A drawing of the entities around one, in rings by distance. Positions depend on nothing but the entities.

const SVG = "http://www.w3.org/2000/svg";
// Width and height, room for names at the sides and above, the largest radii of a ring, entities, characters of a name
// and rings, by the width of the screen.
const WIDE = { width: 960, height: 560, sides: 140, ends: 45, x: 240, y: 190, nodes: 32, chars: 20, rings: 3 };
const NARROW = { width: 340, height: 380, sides: 60, ends: 45, x: 115, y: 140, nodes: 8, chars: 11, rings: 1 };
const CO_OCCURS = "co_occurs_with";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter(Boolean));
  return element;
}

// `near` are the entities with depth, score and the last link on the way; `addressOf` makes the address of an entity.
export function draw(center, near, addressOf) {
  const form = matchMedia("(width < 48rem)").matches ? NARROW : WIDE;
  const shown = near.filter((one) => one.depth > 0 && one.depth <= form.rings).slice(0, form.nodes);
  const root = { entity: center, depth: 0, via: null, children: [] };
  const byId = new Map();
  for (const node of [root, ...shown.map((one) => ({ ...one, children: [] }))]) {
    for (const id of [node.entity.id, ...node.entity.merged_ids]) byId.set(id, byId.get(id) ?? node);
  }
  const nodes = [...new Set(byId.values())];
  for (const node of nodes) if (node !== root) (parentOf(node, byId) ?? root).children.push(node);
  const rings = Math.max(1, ...nodes.map((node) => node.depth));
  const x = Math.min(form.x, (form.width / 2 - form.sides) / rings);
  const y = Math.min(form.y, (form.height / 2 - form.ends) / rings);
  place(root, 0, 2 * Math.PI, { x, y, middle: form.width / 2, height: form.height / 2 });
  // What the entities leave free above and below is not drawn.
  const heights = nodes.map((node) => node.y);
  const top = Math.min(...heights) - form.ends;
  const height = Math.max(...heights) + form.ends - top;
  const links = nodes.filter((node) => node.parent).map((node) => line(node, form));
  return svg(
    "svg",
    {
      class: form === NARROW ? "graph narrow" : "graph",
      viewBox: `0 ${top} ${form.width} ${height}`,
      role: "group",
      "aria-label": `Entities around ${center.name}`,
    },
    ...links,
    ...nodes.map((node) => dot(node, node === root, addressOf, form)),
  );
}

// The entity from which the last link on the way comes; it is nearer.
function parentOf(node, byId) {
  if (!node.via) return null;
  const ends = [byId.get(node.via.entity_a), byId.get(node.via.entity_b)];
  return ends.find((one) => one && one !== node && one.depth < node.depth) ?? null;
}

function leaves(node) {
  return node.children.length ? node.children.reduce((sum, child) => sum + leaves(child), 0) : 1;
}

// Gives each child a sector as large as its part of the leaves.
function place(node, from, to, ring) {
  const angle = (from + to) / 2 - Math.PI / 2;
  node.angle = angle;
  node.x = ring.middle + Math.cos(angle) * ring.x * node.depth;
  node.y = ring.height + Math.sin(angle) * ring.y * node.depth;
  const share = (to - from) / leaves(node);
  let start = from;
  for (const child of node.children) {
    child.parent = node;
    const end = start + share * leaves(child);
    place(child, start, end, ring);
    start = end;
  }
}

function line(node, form) {
  const { parent, via } = node;
  const kind = via?.link_type === CO_OCCURS ? "link together" : "link";
  const stated = via && via.link_type !== CO_OCCURS && form === WIDE;
  // Further out the name of the nearer entity stands at the begin of the line.
  const at = parent.depth ? 0.68 : 0.55;
  const between = (one, other) => one * at + other * (1 - at);
  const label = stated
    ? svg("text", { class: "linktype", x: between(node.x, parent.x), y: between(node.y, parent.y) - 4, "text-anchor": "middle" })
    : null;
  if (label) label.textContent = via.link_type.replaceAll("_", " ");
  return svg("g", {}, svg("line", { class: kind, x1: parent.x, y1: parent.y, x2: node.x, y2: node.y }), label);
}

function dot(node, isCenter, addressOf, form) {
  const { entity } = node;
  const radius = isCenter ? 13 : node.depth === 1 ? 9 : 7;
  // Names stand away from the middle; on a narrow screen below the dot.
  const sideways = form === WIDE && !isCenter && Math.abs(Math.cos(node.angle)) > 0.25;
  const right = Math.cos(node.angle) > 0;
  const above = form === WIDE && !sideways && !isCenter && Math.sin(node.angle) < 0;
  const text = svg("text", {
    x: sideways ? node.x + (right ? radius + 5 : -radius - 5) : node.x,
    y: sideways ? node.y + 5 : node.y + (above ? -radius - 7 : radius + 17),
    "text-anchor": sideways ? (right ? "start" : "end") : "middle",
  });
  text.textContent = entity.name.length > form.chars ? `${entity.name.slice(0, form.chars - 1)}…` : entity.name;
  const title = svg("title", {});
  title.textContent = `${entity.name} (${entity.entity_type})`;
  const type = `node ${entity.entity_type.toLowerCase()}${isCenter ? " center" : ""}`;
  return svg(
    "a",
    { href: addressOf(entity), "aria-label": `${entity.name}, ${entity.entity_type}`, "aria-current": isCenter ? "true" : null },
    title,
    svg("circle", { class: type, cx: node.x, cy: node.y, r: radius }),
    text,
  );
}
