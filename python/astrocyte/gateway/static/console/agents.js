// Private memories of agents, and the terms of the shared vocabulary.

import { get } from "./api.js";
import { badge, el, empty, field, instant, number, table } from "./dom.js";
import { paged, part } from "./pages.js";

const PAGE = 50;
const STATUSES = ["proposed", "approved", "merged", "rejected"];
const STATUS_KINDS = { proposed: "warn", approved: "good", rejected: "bad" };

export async function agentsPage({ params, signal }) {
  const agentId = params.get("agent_id") ?? "";
  const forgotten = params.get("include_forgotten") === "true";
  const status = params.get("status") ?? "proposed";
  return [
    el("h1", {}, "Agents"),
    filter(agentId, forgotten, status),
    ...(await part("Memories", () => memories(agentId, forgotten, signal))),
    ...(await part("Terms", () => terms(status, signal))),
  ];
}

function filter(agentId, forgotten, status) {
  const agent = el("input", { type: "search", value: agentId });
  const box = el("input", { type: "checkbox", checked: forgotten });
  const state = el(
    "select",
    {},
    STATUSES.map((one) => el("option", { value: one, selected: one === status }, one)),
  );
  return el(
    "form",
    {
      class: "filters",
      onsubmit: (event) => {
        event.preventDefault();
        const asked = new URLSearchParams({ agent_id: agent.value, status: state.value });
        if (box.checked) asked.set("include_forgotten", "true");
        location.hash = `agents?${asked}`;
      },
    },
    field("Agent", agent, "Empty: you."),
    field("With forgotten memories", box),
    field("Terms", state),
    el("button", { type: "submit" }, "Show"),
  );
}

function memories(agentId, forgotten, signal) {
  return paged(
    async (token) => {
      const asked = { agent_id: agentId, include_forgotten: forgotten, page_size: PAGE, page_token: token };
      const page = await get("/v1/agent-memory", asked, signal);
      return { rows: page.memories, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("The agent has no memory.")
        : table(
            "Memories of the agent",
            ["Content", "Topic", "About", "Agent", "Uses", "Changed", "State"],
            rows.map((one) => [
              el("span", { class: "text" }, one.content),
              el("span", {}, one.topic, one.is_canonical ? el("span", {}, " ", badge("canonical", "good")) : null),
              one.user_id || "anyone",
              one.agent_id,
              number(one.access_count),
              instant(one.updated_at),
              one.deleted_at ? el("span", {}, "forgotten ", instant(one.deleted_at)) : badge("kept", "good"),
            ]),
          ),
  );
}

function terms(status, signal) {
  return paged(
    async (token) => {
      const page = await get("/v1/terms", { status, page_size: PAGE, page_token: token }, signal);
      return { rows: page.terms, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty(`There is no ${status} term.`)
        : table(
            "Terms, oldest first",
            ["Term", "State", "Other names", "Definition", "Proposals", "Proposed", "Reviewed"],
            rows.map((one) => [
              one.name,
              badge(one.merged_into ? `merged into ${one.merged_into}` : one.status, STATUS_KINDS[one.status] ?? ""),
              one.aliases.join(", ") || "–",
              one.definition || "–",
              number(one.proposals),
              el("span", {}, instant(one.created_at), ` by ${one.proposed_by}`),
              one.reviewed_at ? el("span", {}, instant(one.reviewed_at), ` by ${one.reviewed_by}`) : "–",
            ]),
          ),
  );
}
