// Driver of the conformance test: reads calls as lines of JSON and writes their outcomes.
import { createInterface } from "node:readline";

import { AstrocyteError, connect, type CallOptions, type Client } from "../src/index.js";
import * as v1 from "../src/v1.js";

interface Step {
  connection: { address: string; api_key?: string; tls?: boolean; retries?: boolean } & Record<string, string>;
  method: string;
  kind: "unary" | "server_stream" | "stream";
  requests: string[];
  take?: number;
  deadline?: number;
  headers?: Record<string, string>;
}

interface Definition {
  requestDeserialize(bytes: Buffer): unknown;
  responseSerialize(message: unknown): Buffer;
}

const services = Object.entries(v1).filter(([name]) => name.endsWith("Service"));
const clients = new Map<string, Client>();

for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line) as Step;
  const name = JSON.stringify(step.connection);
  const { address, api_key: apiKey, ...options } = step.connection;
  if (!clients.has(name)) clients.set(name, connect(address, apiKey ? { apiKey, ...options } : options));
  console.log(JSON.stringify(await run(clients.get(name)!, step)));
}
for (const client of clients.values()) client.close();

async function run(client: Client, step: Step): Promise<unknown> {
  const name = step.method[0]!.toLowerCase() + step.method.slice(1);
  const definition = services
    .map(([, service]) => (service as unknown as Record<string, Definition>)[name])
    .find((found) => found !== undefined)!;
  const requests = step.requests.map((raw) => definition.requestDeserialize(Buffer.from(raw, "base64")));
  const options: CallOptions = { ...(step.headers && { headers: step.headers }) };
  if (step.deadline !== undefined) options.deadline = step.deadline;
  const call = (client as unknown as Record<string, (request: unknown, options: CallOptions) => unknown>)[name]!;
  try {
    const answer = call.call(client, step.kind === "stream" ? requests : requests[0], options);
    const responses = step.kind === "unary" ? [await answer] : await first(answer as AsyncIterable<unknown>, step.take);
    return { responses: responses.map((one) => definition.responseSerialize(one).toString("base64")) };
  } catch (error) {
    if (!(error instanceof AstrocyteError)) throw error;
    return {
      error: {
        code: error.code,
        kind: error.name.replace(/Error$/, ""),
        reason: error.reason,
        message: error.message,
        metadata: error.metadata,
        field: error.field,
        retry_after: error.retryAfter ?? null,
        request_id: error.requestId,
      },
    };
  }
}

async function first(responses: AsyncIterable<unknown>, take = Infinity): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const response of responses) {
    found.push(response);
    if (found.length >= take) break;
  }
  return found;
}
