import assert from "node:assert/strict";
import { test } from "node:test";

import { status as Code } from "@grpc/grpc-js";

import { ErrorInfo, RetryInfo } from "../src/generated/google/rpc/error_details.js";
import { AstrocyteError, BankNotFoundError, connect, errorFromStatus, LimitReachedError } from "../src/index.js";
import { ChangeKind } from "../src/v1.js";

const address = process.env.ASTROCYTE_ADDRESS;
const skip = address ? false : "ASTROCYTE_ADDRESS is not set: there is no server";

function detail(type: string, value: Uint8Array) {
  return { typeUrl: `type.googleapis.com/google.rpc.${type}`, value: Buffer.from(value) };
}

test("what is retained is recalled and streamed", { skip }, async () => {
  const client = connect(address!);
  const bankId = "typescript-tests";
  const items = ["Ines lives in Porto.", "Callum lives in Edinburgh."].map((content) => ({ bankId, item: { content } }));
  const outcomes = [];
  for await (const answer of client.streamRetain(items)) outcomes.push(answer.outcome?.$case);
  assert.deepEqual(outcomes, ["result", "result"]);
  const found = await client.recall({ bankId, query: "where does Ines live?" });
  assert.equal(found.hits[0]?.text, "Ines lives in Porto.");
  for await (const { change } of client.watch({ bankId, afterPosition: 0 })) {
    assert.deepEqual([change?.position, change?.kind], [1, ChangeKind.CREATED]);
    break;
  }
  client.close();
});

test("errors have classes", { skip }, async () => {
  const client = connect(address!);
  const query = { bankId: "nobody", query: "anything?" };
  await assert.rejects(client.recall(query), (error: BankNotFoundError) => {
    assert.ok(error instanceof BankNotFoundError);
    assert.deepEqual([error.code, error.metadata.bank_id], [Code.NOT_FOUND, "nobody"]);
    assert.notEqual(error.requestId, "");
    return true;
  });
  await assert.rejects(client.recall({ ...query, maxResults: 1000 }), { name: "InvalidArgumentError", field: "max_results" });
  await assert.rejects(client.recall(query, { deadline: 0 }), { name: "DeadlineExceededError" });
  await assert.rejects(client.recall(query, { signal: AbortSignal.abort() }), { code: Code.CANCELLED });
  await assert.rejects(async () => {
    for await (const change of client.watch({ bankId: "nobody" })) assert.fail(String(change));
  }, BankNotFoundError);
  client.close();
});

test("a failure of the caller's requests ends the stream", { skip }, async () => {
  const client = connect(address!);
  async function* requests() {
    yield { bankId: "typescript-tests", item: { content: "Mara plays the cello." } };
    throw new RangeError("no more");
  }
  await assert.rejects(async () => {
    for await (const answer of client.streamRetain(requests())) assert.ok(answer);
  }, RangeError);
  client.close();
});

test("details become fields", () => {
  const info = { reason: "LIMIT_REACHED", domain: "astrocyte.dev", metadata: { kind: "minute" } };
  const delay = { retryDelay: { seconds: 1, nanos: 500_000_000 } };
  const error = errorFromStatus({
    code: Code.RESOURCE_EXHAUSTED,
    message: "later",
    details: [
      detail("ErrorInfo", ErrorInfo.encode(info).finish()),
      detail("RetryInfo", RetryInfo.encode(delay).finish()),
    ],
  });
  assert.ok(error instanceof LimitReachedError);
  assert.deepEqual([error.message, error.metadata.kind, error.retryAfter], ["later", "minute", 1.5]);
});

test("another domain has no reason here, a bare code has one", () => {
  const info = { reason: "BANK_NOT_FOUND", domain: "example.com", metadata: {} };
  const details = [detail("ErrorInfo", ErrorInfo.encode(info).finish())];
  const other = errorFromStatus({ code: Code.NOT_FOUND, message: "no", details });
  assert.deepEqual([other.constructor, other.reason], [AstrocyteError, ""]);
  const bare = errorFromStatus({ code: Code.UNAVAILABLE, message: "down", details: [] });
  assert.equal(bare.name, "UnavailableError");
});

test("half a client certificate is refused", () => {
  assert.throws(() => connect("localhost:50051", { certificate: "client.pem" }), /both certificate and key/);
});
