// Calls of the API under /v1, with the key of this tab.

const KEY = "astrocyte-key";

export class ApiError extends Error {
  constructor(status, told) {
    super(told.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = told.code ?? "unknown";
    this.field = told.field ?? null;
  }
}

// The key is kept until the tab is closed, and is sent in a header only.
export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

export async function call(method, path, { params = {}, body = null, signal = null } = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== "" && one !== null && one !== undefined && one !== false) query.append(name, String(one));
    }
  }
  const headers = {};
  if (key.get()) headers.authorization = `Bearer ${key.get()}`;
  if (body) headers["content-type"] = "application/json";
  const url = query.size ? `${path}?${query}` : path;
  const response = await fetch(url, {
    method,
    headers,
    body: body && JSON.stringify(body),
    signal,
    credentials: "omit",
    cache: "no-store",
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, answer.error ?? {});
  return answer;
}

export const get = (path, params, signal) => call("GET", path, { params, signal });
export const post = (path, body, signal) => call("POST", path, { body, signal });

export function bankPath(bankId, rest = "") {
  return `/v1/banks/${encodeURIComponent(bankId)}${rest}`;
}
