// API keys and grants.

import { get } from "./api.js";
import { badge, el, empty, instant, table } from "./dom.js";
import { bankFilter } from "./operations.js";
import { paged, part } from "./pages.js";

const PAGE = 50;

export async function accessPage({ params, signal }) {
  const bankId = params.get("bank_id") ?? "";
  const revoked = params.get("include_revoked") === "true";
  const box = el("input", { type: "checkbox", checked: revoked });
  const keys = await part("Keys", async () => keyTable((await get("/v1/keys", {}, signal)).api_keys));
  const grants = await part("Grants", () => grantList(bankId, revoked, signal));
  return [
    el("h1", {}, "Keys and grants"),
    ...keys,
    grants[0],
    bankFilter("access", bankId, { name: "include_revoked", label: "With revoked grants", control: box }),
    grants[1],
  ];
}

function keyState(one) {
  if (one.revoked_at) return badge("revoked", "bad");
  if (one.expires_at && Date.parse(one.expires_at) < Date.now()) return badge("expired", "warn");
  return badge("active", "good");
}

function keyTable(keys) {
  if (!keys.length) return empty("No key was created by call. Keys in the settings are not listed.");
  return table(
    "API keys, oldest first",
    ["Name", "Principal", "State", "Id", "Created", "Expires", "Last used"],
    keys.map((one) => [
      one.name,
      one.principal,
      keyState(one),
      el("code", {}, one.key_id),
      el("span", {}, instant(one.created_at), ` by ${one.created_by}`),
      instant(one.expires_at),
      instant(one.last_used_at),
    ]),
  );
}

function grantList(bankId, revoked, signal) {
  return paged(
    async (token) => {
      const asked = { bank_id: bankId, include_revoked: revoked, page_size: PAGE, page_token: token };
      const page = await get("/v1/grants", asked, signal);
      return { rows: page.grants, next: page.next_page_token };
    },
    (rows) =>
      rows.length === 0
        ? empty("There is no grant.")
        : table(
            "Grants, those of the settings first",
            ["Principal", "Bank", "Permissions", "Granted", "Revoked"],
            rows.map((one) => [
              one.principal,
              one.bank_id,
              el("span", {}, one.permissions.map((name) => badge(name, name === "read" ? "" : "warn"))),
              one.granted_by ? el("span", {}, instant(one.granted_at), ` by ${one.granted_by}`) : "by the settings",
              one.revoked_at ? el("span", {}, instant(one.revoked_at), ` by ${one.revoked_by}`) : "–",
            ]),
          ),
  );
}
