// The console: login, navigation and pages. An address after # names the page and its parts.

import { ApiError, get, key } from "./api.js";
import { deletion } from "./deletion.js";
import { el, field } from "./dom.js";
import { accessPage } from "./access.js";
import { agentsPage } from "./agents.js";
import { bankPage, banksPage } from "./banks.js";
import { graphPage } from "./graph.js";
import { holdsPage } from "./holds.js";
import { knowledgePage, modelPage, observationPage } from "./knowledge.js";
import { memoriesPage, memoryPage } from "./memories.js";
import { auditPage, operationsPage } from "./operations.js";
import { recallPage } from "./recall.js";
import { pagePage, wikiPage } from "./wiki.js";

const PAGES = [
  { name: "banks", title: "Banks", show: banksPage },
  { name: "recall", title: "Recall", show: recallPage },
  { name: "agents", title: "Agents", show: agentsPage },
  { name: "operations", title: "Operations", show: operationsPage },
  { name: "audit", title: "Audit trail", show: auditPage },
  { name: "access", title: "Keys and grants", show: accessPage },
  { name: "holds", title: "Legal holds", show: holdsPage },
];
const PARTS = {
  bank: bankPage,
  memories: memoriesPage,
  memory: memoryPage,
  graph: graphPage,
  knowledge: knowledgePage,
  observation: observationPage,
  model: modelPage,
  wiki: wikiPage,
  page: pagePage,
};
// The page in the navigation to which a part belongs.
const WITHIN = Object.fromEntries(Object.keys(PARTS).map((part) => [part, "banks"]));

const header = document.getElementById("header");
const main = document.getElementById("main");
const status = document.getElementById("status");
let server = null;
let shown = new AbortController();

export function say(text) {
  status.textContent = text;
}

function parse() {
  const [path, query] = location.hash.slice(1).split("?");
  const [name, ...parts] = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { name: name ?? "banks", parts, params: new URLSearchParams(query ?? "") };
}

function navigation(current) {
  const links = PAGES.map(({ name, title }) =>
    el("a", { href: `#${name}`, "aria-current": current === name ? "page" : null }, title),
  );
  const leave = el("button", { type: "button", class: "quiet", onclick: logOut }, "Log out");
  header.replaceChildren(
    el("div", { class: "brand" }, el("strong", {}, "Astrocyte"), el("small", {}, `version ${server.version}`)),
    el("nav", { "aria-label": "Pages" }, links),
    el("div", { class: "actions" }, deletion.control(), key.get() ? leave : null),
  );
}

function logOut() {
  key.set("");
  deletion.off();
  server = null;
  route();
}

function failed(error) {
  const text = error instanceof ApiError ? error.message : "The server cannot be reached.";
  return el(
    "div",
    { class: "error", role: "alert" },
    el("p", {}, text),
    error instanceof ApiError ? el("p", { class: "faint" }, error.code) : null,
    el("button", { type: "button", onclick: route }, "Try again"),
  );
}

function login(refused) {
  const input = el("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const form = el(
    "form",
    {
      class: "panel login",
      onsubmit: (event) => {
        event.preventDefault();
        key.set(input.value.trim());
        route();
      },
    },
    el("h1", { tabindex: "-1" }, "Log in"),
    refused ? el("p", { class: "error", role: "alert" }, refused) : null,
    field("API key or token", input, "Kept until this tab is closed."),
    el("button", { type: "submit" }, "Log in"),
  );
  header.replaceChildren(el("div", { class: "brand" }, el("strong", {}, "Astrocyte")));
  main.replaceChildren(form);
  document.title = "Log in – Astrocyte console";
  input.focus();
}

async function connect() {
  try {
    server = (await get("/v1/server")).server_info;
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      const refused = key.get() ? error.message : "";
      key.set("");
      login(refused);
    } else {
      header.replaceChildren(el("div", { class: "brand" }, el("strong", {}, "Astrocyte")));
      main.replaceChildren(failed(error));
    }
    return false;
  }
}

export async function route() {
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  const { name, parts, params } = parse();
  const page = PAGES.find((one) => one.name === name);
  const show = page?.show ?? PARTS[name];
  if (server === null && !(await connect())) return;
  navigation(WITHIN[name] ?? name);
  say("Loading");
  main.setAttribute("aria-busy", "true");
  try {
    if (!show) throw new ApiError(404, { code: "not_found", message: "There is no such page." });
    const content = await show({ parts, params, signal });
    if (signal.aborted) return;
    main.replaceChildren(...content);
    const title = main.querySelector("h1");
    document.title = `${title.textContent} – Astrocyte console`;
    title.tabIndex = -1;
    title.focus({ preventScroll: true });
    say("");
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof ApiError && error.status === 401) {
      server = null;
      key.set("");
      login(error.message);
      return;
    }
    main.replaceChildren(el("h1", {}, page?.title ?? "Not available"), failed(error));
    say("");
  } finally {
    if (!signal.aborted) main.removeAttribute("aria-busy");
  }
}

// The address names the page, so the link moves the focus by itself.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
deletion.changed = route;
window.addEventListener("hashchange", route);
route();
