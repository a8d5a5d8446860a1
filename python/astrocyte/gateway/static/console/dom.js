// Elements and values for people. Text is only ever set as text, so that no memory becomes markup.

// An element with attributes, event handlers (onclick) and children; null and false are left out.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function number(value) {
  return Number(value).toLocaleString("en");
}

export function decimal(value, digits = 3) {
  return value === undefined || value === null ? "–" : Number(value).toFixed(digits);
}

export function size(bytes) {
  const [unit, name] = bytes < 1e6 ? [1e3, "kB"] : [1e6, "MB"];
  return `${(bytes / unit).toLocaleString("en", { maximumFractionDigits: 1 })} ${name}`;
}

// An instant of the API, in the browser's time zone, with the exact value as its title.
export function instant(text) {
  if (!text) return el("span", { class: "faint" }, "–");
  const shown = new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
  return el("time", { datetime: text, title: text }, shown);
}

// An enum value, such as "arm_cut", in words.
export function words(value) {
  return value ? value.replaceAll("_", " ") : "–";
}

export function badge(text, kind = "") {
  return el("span", { class: `badge ${kind}` }, text);
}

// A word that is not broken between lines.
export function whole(text) {
  return el("span", { class: "whole" }, text);
}

export function tags(values) {
  return values.length ? el("span", {}, values.map((tag) => badge(tag))) : el("span", { class: "faint" }, "–");
}

// A labelled control; `make` gets the id.
export function field(label, control, hint = null) {
  const id = `field-${(field.count = (field.count ?? 0) + 1)}`;
  control.id = id;
  const note = hint ? el("small", { id: `${id}-hint` }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return el("div", { class: "field" }, el("label", { for: id }, label), control, note);
}

// A table whose cells name their column, which narrow screens show beside them.
export function table(caption, columns, rows) {
  // The roles are said again because rows that are shown as cards would lose them.
  const heads = columns.map((column) => el("th", { scope: "col", role: "columnheader" }, column));
  const body = rows.map((cells) =>
    el("tr", { role: "row" }, cells.map((cell, index) =>
      index === 0
        ? el("th", { scope: "row", role: "rowheader" }, cell)
        : el("td", { role: "cell", "data-column": columns[index] }, cell),
    )),
  );
  return el(
    "table",
    { role: "table" },
    el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)),
    el("tbody", { role: "rowgroup" }, body),
  );
}

// Names and values side by side.
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

export function empty(text) {
  return el("p", { class: "faint" }, text);
}
