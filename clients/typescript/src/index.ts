/**
 * Client for Astrocyte, a memory server for AI agents.
 *
 * `connect` returns a Client, which has the methods of all services of the protocol; `@astrocyte/client/v1` has their
 * messages.
 */
export { AstrocyteError } from "./astrocyte_error.js";
export type { CallOptions } from "./calls.js";
export { Client, connect, type ConnectOptions } from "./client.js";
export * from "./reasons.js";
export { errorFromStatus } from "./statuses.js";
