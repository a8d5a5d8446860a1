import type { status as Code } from "@grpc/grpc-js";

/** The parts of an error. */
export interface ErrorParts {
  /** Code of gRPC. */
  code: Code;
  /** Reason, such as "BANK_NOT_FOUND"; empty if there is none. */
  reason: string;
  /** Each variable part of the message. */
  metadata: Record<string, string>;
  /** Path of the invalid field of the request; empty if it is not about a field. */
  field: string;
  /** Seconds to wait before another try; undefined if the server does not say. */
  retryAfter: number | undefined;
  /** Id of the call in the log of the server; empty if it has none. */
  requestId: string;
}

/** A failed call. Its class is that of its reason; a reason that this version does not know has this class. */
export class AstrocyteError extends Error {
  readonly code: Code;
  readonly reason: string;
  readonly metadata: Record<string, string>;
  readonly field: string;
  readonly retryAfter: number | undefined;
  readonly requestId: string;

  constructor(message: string, parts: ErrorParts) {
    super(message);
    this.name = new.target.name;
    this.code = parts.code;
    this.reason = parts.reason;
    this.metadata = parts.metadata;
    this.field = parts.field;
    this.retryAfter = parts.retryAfter;
    this.requestId = parts.requestId;
  }
}
