import { readFileSync } from "node:fs";

import { credentials, type ChannelCredentials } from "@grpc/grpc-js";

import { DEFAULT_TIMEOUT_SECONDS } from "./calls.js";
import { Methods } from "./methods.js";

/** Options of a connection. */
export interface ConnectOptions {
  /** API key or token, sent with every call. Use it with TLS, except to this machine. */
  apiKey?: string;
  /** Use TLS; `ca` and `certificate` imply it. */
  tls?: boolean;
  /** PEM file of the roots to trust. Default: those of Node. */
  ca?: string;
  /** PEM file of the client's certificate, with its chain. */
  certificate?: string;
  /** PEM file of the certificate's private key. */
  key?: string;
  /** Seconds until a call fails that is no stream; null leaves it to the server. Default: 30. */
  timeout?: number | null;
  /** Repeat calls that the server could not take. Default: true. */
  retries?: boolean;
}

/** Calls a server. Made by `connect`. */
export class Client extends Methods {}

/**
 * Connects to a server. Nothing is sent before the first call.
 *
 * @param address - `host:port`, or `unix:PATH`.
 * @throws Error - A file cannot be read, or only one of certificate and key is given.
 */
export function connect(address: string, options: ConnectOptions = {}): Client {
  return new Client(address, channelCredentials(options), {
    apiKey: options.apiKey,
    timeout: options.timeout === undefined ? DEFAULT_TIMEOUT_SECONDS : options.timeout,
    retries: options.retries ?? true,
  });
}

function channelCredentials(options: ConnectOptions): ChannelCredentials {
  const { tls, ca, certificate, key } = options;
  if ((certificate === undefined) !== (key === undefined)) {
    throw new Error("a client certificate needs two files: pass both certificate and key");
  }
  if (!tls && ca === undefined && certificate === undefined) {
    return credentials.createInsecure();
  }
  const read = (file: string | undefined) => (file === undefined ? null : readFileSync(file));
  return credentials.createSsl(read(ca), read(key), read(certificate));
}
