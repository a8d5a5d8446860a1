// Lists that come in pages, and parts that may be refused.

import { ApiError } from "./api.js";
import { el } from "./dom.js";

// A section that shows a page, and adds the next one at the press of a button. `load` gets a page token and returns
// `{ rows, next }`; `show` makes an element of all rows so far.
export async function paged(load, show) {
  let { rows, next } = await load("");
  const section = el("section");
  draw();
  return section;

  function draw() {
    const more = next ? el("button", { type: "button", onclick: add }, "Show more") : null;
    section.replaceChildren(...[show(rows), more].filter(Boolean));
  }

  async function add(event) {
    event.target.disabled = true;
    try {
      const page = await load(next);
      rows = [...rows, ...page.rows];
      next = page.next;
      draw();
    } catch (error) {
      event.target.disabled = false;
      const text = error instanceof ApiError ? error.message : "The server cannot be reached.";
      section.append(el("p", { class: "error", role: "alert" }, text));
    }
  }
}

// A part of the page that the key may not see does not hide the other part.
export async function part(title, load) {
  try {
    return [el("h2", {}, title), await load()];
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 401) throw error;
    return [el("h2", {}, title), el("p", { class: "error", role: "alert" }, error.message)];
  }
}
