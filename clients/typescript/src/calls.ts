import { randomUUID } from "node:crypto";

import {
  Client as Channel,
  Metadata,
  type CallOptions as GrpcCallOptions,
  type ChannelCredentials,
  type ClientReadableStream,
  type MethodDefinition,
  type ServiceError,
} from "@grpc/grpc-js";

import type { Duration } from "./generated/google/protobuf/duration.js";
import { serviceConfig } from "./service_config.js";
import { errorFromCall } from "./statuses.js";

/** Longer than the deadlines that the server sets by itself, so that its own error comes first. */
export const DEFAULT_TIMEOUT_SECONDS = 30;
/** The largest answer that a server can be set to send. */
const MAX_RECEIVE_BYTES = 64 * 1024 * 1024;
/** A server that was down is tried again at least this often; the default of gRPC grows to two minutes. */
const MAX_RECONNECT_MS = 5_000;
const BANK_HEADER = "x-astrocyte-bank";
/** Ids of banks, as the protocol describes them. Others are left to the server, whose error names the field. */
const BANK_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}$/;

/** Options of one call. */
export interface CallOptions {
  /** Seconds until the call fails; replaces the timeout of the client. null: none. */
  deadline?: number | null;
  /** Sent as metadata. */
  headers?: Record<string, string>;
  /** Cancels the call. */
  signal?: AbortSignal;
}

/** The properties of a call. */
interface Facts {
  /** The bank that it names. */
  bank?: string | undefined;
  /** True if an empty request id is filled, so that a repeated call takes effect once. */
  idempotent?: boolean;
  /** The time that the server is asked to wait. */
  waits?: Duration | undefined;
  /** Added to the default timeout. */
  extraSeconds?: number;
}

interface Settings {
  apiKey: string | undefined;
  timeout: number | null;
  retries: boolean;
}

/** Makes the calls of a client. */
export abstract class Calls {
  private readonly channel: Channel;

  constructor(
    address: string,
    credentials: ChannelCredentials,
    private readonly settings: Settings,
  ) {
    this.channel = new Channel(address, credentials, {
      "grpc.enable_retries": settings.retries ? 1 : 0,
      "grpc.max_receive_message_length": MAX_RECEIVE_BYTES,
      "grpc.max_reconnect_backoff_ms": MAX_RECONNECT_MS,
      "grpc.service_config": JSON.stringify(serviceConfig),
    });
  }

  /** Closes the connection. */
  close(): void {
    this.channel.close();
  }

  protected unary<Q, R>(
    method: MethodDefinition<Q, R>,
    message: Q,
    facts: Facts,
    options: CallOptions,
  ): Promise<R> {
    return new Promise((resolve, reject) => {
      const request = facts.idempotent ? withRequestId(message) : message;
      const call = this.channel.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        this.metadata(facts.bank, options),
        this.callOptions(facts, options),
        (error, response) => (error ? reject(errorFromCall(error)) : resolve(response as R)),
      );
      cancelBy(options.signal, call);
    });
  }

  protected serverStream<Q, R>(
    method: MethodDefinition<Q, R>,
    message: Q,
    facts: Facts,
    options: CallOptions,
  ): AsyncIterable<R> {
    const call = this.channel.makeServerStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      message,
      this.metadata(facts.bank, options),
      streamOptions(options),
    );
    cancelBy(options.signal, call);
    return responses(call);
  }

  protected stream<Q, R, P>(
    method: MethodDefinition<Q, R>,
    requests: Iterable<P> | AsyncIterable<P>,
    complete: (partial: P) => Q,
    options: CallOptions,
  ): AsyncIterable<R> {
    const call = this.channel.makeBidiStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      this.metadata(undefined, options),
      streamOptions(options),
    );
    cancelBy(options.signal, call);
    const send = async () => {
      for await (const request of requests) {
        if (call.destroyed) return;
        if (!call.write(complete(request))) {
          await new Promise<void>((resolve) => {
            call.once("drain", resolve);
            call.once("close", resolve);
          });
        }
      }
      call.end();
    };
    // A failure of the caller's requests ends the call; a failure of the call is raised by its responses.
    send().catch((error: Error) => call.destroy(error));
    return responses(call);
  }

  private metadata(bank: string | undefined, options: CallOptions): Metadata {
    const metadata = new Metadata();
    if (this.settings.apiKey) metadata.set("authorization", `Bearer ${this.settings.apiKey}`);
    if (bank !== undefined && BANK_ID.test(bank)) metadata.set(BANK_HEADER, bank);
    for (const [name, value] of Object.entries(options.headers ?? {})) metadata.set(name, value);
    return metadata;
  }

  private callOptions(facts: Facts, options: CallOptions): GrpcCallOptions {
    if (options.deadline !== undefined) return streamOptions(options);
    if (this.settings.timeout === null) return {};
    const wait = facts.waits ? Math.max(0, facts.waits.seconds + facts.waits.nanos / 1e9) : (facts.extraSeconds ?? 0);
    return { deadline: Date.now() + (this.settings.timeout + wait) * 1_000 };
  }
}

function streamOptions(options: CallOptions): GrpcCallOptions {
  const seconds = options.deadline ?? null;
  return seconds === null ? {} : { deadline: Date.now() + seconds * 1_000 };
}

function withRequestId<Q>(message: Q): Q {
  const { requestId } = message as { requestId?: string };
  return requestId ? message : { ...message, requestId: randomUUID() };
}

function cancelBy(signal: AbortSignal | undefined, call: { cancel(): void }): void {
  if (signal?.aborted) call.cancel();
  else signal?.addEventListener("abort", () => call.cancel(), { once: true });
}

/** The responses of a stream; the call ends with the iterator. */
async function* responses<R>(call: ClientReadableStream<R>): AsyncGenerator<R> {
  try {
    for await (const response of call) yield response as R;
  } catch (error) {
    throw isServiceError(error) ? errorFromCall(error) : error;
  } finally {
    call.cancel();
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "metadata" in error;
}
