// Legal holds.

import { get } from "./api.js";
import { badge, el, empty, instant, number, table, tags } from "./dom.js";
import { bankFilter } from "./operations.js";
import { paged } from "./pages.js";

const PAGE = 50;

export async function holdsPage({ params, signal }) {
  const bankId = params.get("bank_id") ?? "";
  const released = params.get("include_released") === "true";
  const box = el("input", { type: "checkbox", checked: released });
  const list = await paged(
    async (token) => {
      const asked = { bank_id: bankId, include_released: released, page_size: PAGE, page_token: token };
      const page = await get("/v1/holds", asked, signal);
      return { rows: page.holds, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("There is no hold.")
        : table(
            "Legal holds, oldest first",
            ["Hold", "Bank", "State", "Covers", "Reason", "Placed", "Released"],
            rows.map((one) => [
              el("code", {}, one.hold_id),
              one.bank_id,
              one.released_at ? badge("released") : badge("active", "warn"),
              covers(one),
              one.reason || "–",
              el("span", {}, instant(one.placed_at), ` by ${one.placed_by}`),
              one.released_at ? el("span", {}, instant(one.released_at), ` by ${one.released_by}`) : "–",
            ]),
          ),
  );
  const more = { name: "include_released", label: "With released holds", control: box };
  return [el("h1", {}, "Legal holds"), bankFilter("holds", bankId, more), list];
}

function covers(hold) {
  if (hold.memory_ids.length) return `${number(hold.memory_ids.length)} memories`;
  return hold.tags.length ? tags(hold.tags) : "the whole bank";
}
