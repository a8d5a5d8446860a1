// Recalls with the rank of each hit in each arm, timings, and why a memory is there or not.

import { ApiError, post } from "./api.js";
import { badge, decimal, el, empty, facts, field, instant, number, table, tags, words } from "./dom.js";
import { memoryLink, splitList } from "./memories.js";

const FILTERS = ["tags", "fact_types", "session_id", "fusion_method", "strategy", "time_zone", "from", "until", "as_of"];
const FIELDS = ["bank", "query", "max_results", ...FILTERS];

export async function recallPage({ params, signal }) {
  const value = (name, otherwise = "") => params.get(name) ?? otherwise;
  const inputs = {
    bank: el("input", { required: true, value: value("bank"), autocomplete: "off" }),
    query: el("textarea", { required: true, rows: "2", maxlength: "8192" }),
    max_results: el("input", { type: "number", min: "1", max: "200", value: value("max_results", "10") }),
    tags: el("input", { value: value("tags") }),
    fact_types: el("input", { value: value("fact_types") }),
    session_id: el("input", { value: value("session_id") }),
    fusion_method: select(["", "rrf", "relative_score", "dbsf"], value("fusion_method")),
    strategy: select(["", "parallel", "cascade", "first_match"], value("strategy")),
    time_zone: el("input", { value: value("time_zone"), placeholder: "Europe/Berlin" }),
    from: moment(value("from")),
    until: moment(value("until")),
    as_of: moment(value("as_of")),
  };
  inputs.query.value = value("query");
  const results = el("div", { "aria-live": "polite" });
  const form = el(
    "form",
    {
      class: "panel",
      onsubmit: (event) => {
        event.preventDefault();
        const query = new URLSearchParams();
        for (const name of FIELDS) if (inputs[name].value) query.set(name, inputs[name].value);
        history.replaceState(null, "", `#recall?${query}`);
        run(inputs, results, signal);
      },
    },
    el("div", { class: "grid" }, field("Bank", inputs.bank, "Several are separated by commas."), field("Hits", inputs.max_results)),
    field("Query", inputs.query),
    el(
      "details",
      { open: FILTERS.some((name) => params.get(name)) },
      el("summary", {}, "Filters and ranking"),
      el(
        "div",
        { class: "grid" },
        field("Tags", inputs.tags, "Separated by commas; any of them."),
        field("Fact types", inputs.fact_types, "Separated by commas."),
        field("Conversation", inputs.session_id),
        field("Fusion", inputs.fusion_method),
        field("Strategy", inputs.strategy, "Order in which several are searched."),
        field("Time zone of dates", inputs.time_zone),
        field("Happened from", inputs.from, "In your time zone."),
        field("Happened until", inputs.until, "In your time zone."),
        field("As of", inputs.as_of, "The memories as they were then."),
      ),
    ),
    el("button", { type: "submit" }, "Recall"),
  );
  if (inputs.bank.value && inputs.query.value) run(inputs, results, signal);
  return [el("h1", {}, "Recall"), form, results];
}

function select(values, chosen) {
  return el("select", {}, values.map((one) => el("option", { value: one, selected: one === chosen }, words(one) === "–" ? "default" : words(one))));
}

function moment(value) {
  return el("input", { type: "datetime-local", step: "1", value });
}

// The instant of a datetime-local input, or undefined.
function instantOf(input) {
  return input.value ? new Date(input.value).toISOString() : undefined;
}

function requestOf(inputs) {
  const banks = splitList(inputs.bank.value);
  const asked = { query: inputs.query.value, max_results: Number(inputs.max_results.value) || 10, include_sources: true };
  if (banks.length === 1) asked.bank_id = banks[0];
  else asked.banks = banks;
  for (const name of ["tags", "fact_types"]) {
    const values = splitList(inputs[name].value);
    if (values.length) asked[name] = values;
  }
  for (const name of ["session_id", "fusion_method", "strategy", "time_zone"]) if (inputs[name].value) asked[name] = inputs[name].value;
  const [start, end, asOf] = [inputs.from, inputs.until, inputs.as_of].map(instantOf);
  if (start || end) asked.time_range = { start, end };
  if (asOf) asked.as_of = asOf;
  return asked;
}

async function run(inputs, results, signal) {
  const asked = requestOf(inputs);
  results.setAttribute("aria-busy", "true");
  try {
    const found = await post("/v1/recall", asked, signal);
    results.replaceChildren(...shown(asked, found));
  } catch (error) {
    if (signal.aborted) return;
    results.replaceChildren(problem(error));
  } finally {
    results.removeAttribute("aria-busy");
  }
}

function problem(error) {
  return el("p", { class: "error", role: "alert" }, error instanceof ApiError ? error.message : "The server cannot be reached.");
}

function shown(asked, found) {
  const trace = found.trace;
  const verdict = found.abstain ? badge("too uncertain to answer from", "warn") : null;
  return [
    el("h2", {}, `${number(found.hits.length)} of ${number(found.total_available)} candidates`),
    el(
      "p",
      {},
      found.confidence === undefined ? "" : `Confidence ${decimal(found.confidence, 2)} `,
      verdict,
      found.truncated ? badge("cut by the token budget", "warn") : null,
      trace?.cache_hit ? badge("from the answer cache") : null,
      trace?.degraded ? badge(`degraded: ${trace.degraded}`, "warn") : null,
    ),
    found.directives.length
      ? el("section", { "aria-label": "Directives" }, found.directives.map((one) => el("p", {}, badge("directive"), ` ${one.rule_text}`)))
      : null,
    ...found.warnings.map((text) => el("p", { class: "faint" }, text)),
    found.hits.length
      ? el("ol", { class: "hits" }, found.hits.map((hit) => el("li", {}, card(asked, trace, hit))))
      : empty("Nothing was found."),
    whyNot(asked, trace),
    ...(trace ? timings(trace) : []),
  ].filter((one) => one !== null);
}

function card(asked, trace, hit) {
  const explanation = el("div", { "aria-live": "polite" });
  const why = el(
    "button",
    { type: "button", class: "quiet", onclick: () => explain(asked, trace, hit.memory_id, explanation) },
    "Why is it here?",
  );
  return el(
    "article",
    {},
    el("p", { class: "text" }, hit.text),
    el(
      "p",
      { class: "faint" },
      memoryLink(hit.bank_id, hit.memory_id),
      ` · ${hit.fact_type} · ${hit.bank_id}${hit.bank_rank ? ` rank ${hit.bank_rank}` : ""} · `,
      hit.occurred_at ? el("span", {}, "happened ", instant(hit.occurred_at)) : el("span", {}, "retained ", instant(hit.retained_at)),
      hit.engine ? ` · engine ${hit.engine}` : "",
    ),
    hit.tags.length ? tags(hit.tags) : null,
    el(
      "p",
      { class: "ranks" },
      badge(`score ${decimal(hit.score)}`),
      hit.arms.map((arm) => badge(`${arm.arm} #${arm.rank} (${decimal(arm.score)})`)),
      hit.boosts.map((boost) => badge(`${boost.name} ${boost.value >= 0 ? "+" : ""}${decimal(boost.value)}`)),
    ),
    trace ? paths(trace, hit) : null,
    trace ? why : null,
    explanation,
  );
}

// How the arm "graph" came to a hit.
function paths(trace, hit) {
  const path = trace.via.find((one) => one.memory_id === hit.memory_id && one.bank_id === hit.bank_id);
  if (!path) return null;
  const steps = path.entity_ids.map((id, place) => (place ? ` – ${path.link_types[place - 1]} – ${id}` : id));
  // A link between two memories may come last: from one that mentions the last entity.
  if (path.through_memory_id) steps.push(` – mentioned in – ${path.through_memory_id} – ${path.link_types.at(-1)}`);
  return el("p", { class: "faint" }, `Graph: ${steps.join("")}`);
}

// For several banks each has its own position, so none can be given.
function explainRequest(asked, trace, memoryId) {
  return { recall: asked, memory_ids: [memoryId], position: asked.banks ? 0 : trace.position };
}

async function explain(asked, trace, memoryId, place) {
  place.setAttribute("aria-busy", "true");
  try {
    const told = await post("/v1/explain", explainRequest(asked, trace, memoryId));
    place.replaceChildren(...explained(told));
  } catch (error) {
    place.replaceChildren(problem(error));
  } finally {
    place.removeAttribute("aria-busy");
  }
}

function explained(told) {
  const [one] = told.explanations;
  const arms = one.arms.map((arm) => [
    arm.arm,
    arm.rank ? `#${number(arm.rank)}` : "not found",
    decimal(arm.score),
    arm.cut_off === undefined ? "all matches" : decimal(arm.cut_off),
    arm.proposed ? "yes" : "no",
  ]);
  return [
    el("p", {}, badge(words(one.stage), one.stage === "returned" ? "good" : "warn"), ` ${one.detail}`),
    told.moved ? el("p", { class: "faint" }, "The bank changed since the recall.") : null,
    facts([
      ["Rank", one.rank ? `#${number(one.rank)}` : "–"],
      ["Rank after fusion", one.fused_rank ? `#${number(one.fused_rank)} of ${number(told.candidates)}` : "–"],
      ["Score after fusion", decimal(one.fused_score)],
      ["Conditions that it does not meet", one.conditions.join(", ") || "–"],
      ["Repeats", one.repeats || "–"],
      ["Smallest change that returns it", one.counterfactual?.summary ?? "–"],
    ]),
    arms.length ? table("Rank in each arm", ["Arm", "Rank", "Score", "Last candidate", "Proposed"], arms) : null,
    told.items.length
      ? table(
          "Observations and mental models",
          ["Id", "Outcome", "Score", "Weight", "Relevance", "Memories", "Bonus"],
          told.items.map((item) => [
            item.item_id,
            `${words(item.stage)}: ${item.detail}`,
            decimal(item.score),
            decimal(item.weight, 2),
            decimal(item.relevance),
            number(item.proof_count),
            decimal(item.proof_bonus),
          ]),
        )
      : null,
  ].filter(Boolean);
}

function whyNot(asked, trace) {
  if (!trace) return el("span");
  const input = el("input", { required: true, placeholder: "mem_…", autocomplete: "off", spellcheck: "false" });
  const place = el("div", { "aria-live": "polite" });
  return el(
    "section",
    { class: "panel" },
    el("h2", {}, "Why is a memory not here?"),
    el(
      "form",
      {
        class: "filters",
        onsubmit: (event) => {
          event.preventDefault();
          explain(asked, trace, input.value.trim(), place);
        },
      },
      field("Memory id", input),
      el("button", { type: "submit" }, "Explain"),
    ),
    place,
  );
}

function timings(trace) {
  const arms = Object.keys({ ...trace.strategy_candidate_counts, ...trace.strategy_timings_ms }).sort();
  const stages = Object.entries(trace.stage_timings_ms).sort(([, one], [, other]) => other - one);
  return [
    el("h2", {}, `Trace: ${decimal(trace.latency_ms, 2)} ms`),
    arms.length
      ? table(
          "Arms",
          ["Arm", "Candidates", "Milliseconds"],
          arms.map((arm) => [arm, number(trace.strategy_candidate_counts[arm] ?? 0), decimal(trace.strategy_timings_ms[arm])]),
        )
      : null,
    stages.length
      ? table(
          "Stages",
          ["Stage", "Milliseconds", "Share"],
          stages.map(([stage, time]) => [
            stage,
            decimal(time),
            el("meter", { min: "0", max: String(Math.max(trace.latency_ms, time)), value: String(time), "aria-label": `Share of ${stage}` }),
          ]),
        )
      : null,
    trace.banks.length
      ? table(
          "Banks",
          ["Bank", "Outcome", "Weight", "Found", "Kept"],
          trace.banks.map((bank) => [bank.bank_id, words(bank.outcome), decimal(bank.weight, 2), number(bank.found), number(bank.kept)]),
        )
      : null,
    facts([
      ["Fusion", words(trace.fusion_method)],
      ["Plan", trace.plan || "–"],
      ["Intent", `${trace.intent || "unknown"} (${decimal(trace.intent_confidence, 2)})`],
      ["Dates in the query", dates(trace.time_windows)],
    ]),
  ].filter(Boolean);
}

function dates(windows) {
  return windows.length ? el("span", {}, windows.map((one) => el("span", {}, instant(one.start), " to ", instant(one.end), " "))) : "–";
}
