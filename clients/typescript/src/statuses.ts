import { status as Code, type ServiceError } from "@grpc/grpc-js";

import { AstrocyteError, type ErrorParts } from "./astrocyte_error.js";
import { BadRequest, ErrorInfo, RetryInfo } from "./generated/google/rpc/error_details.js";
import { Status } from "./generated/google/rpc/status.js";
import { byReason } from "./reasons.js";

const DOMAIN = "astrocyte.dev";
const DETAILS_KEY = "grpc-status-details-bin";
const REQUEST_ID_KEY = "x-request-id";
/** Reasons of statuses without details: they come from gRPC, a proxy or the limits below the server's code. */
const BARE_REASONS: Record<number, string> = {
  [Code.DEADLINE_EXCEEDED]: "DEADLINE_EXCEEDED",
  [Code.RESOURCE_EXHAUSTED]: "MESSAGE_TOO_LARGE",
  [Code.UNAUTHENTICATED]: "UNAUTHENTICATED",
  [Code.UNAVAILABLE]: "UNAVAILABLE",
  [Code.UNIMPLEMENTED]: "NOT_SUPPORTED",
};

/** The error of a status, such as that of an item of a stream. */
export function errorFromStatus(status: Status, requestId = ""): AstrocyteError {
  const parts: ErrorParts = {
    code: status.code,
    reason: BARE_REASONS[status.code] ?? "",
    metadata: {},
    field: "",
    retryAfter: undefined,
    requestId,
  };
  for (const { typeUrl, value } of status.details) {
    const type = typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
    if (type === "google.rpc.ErrorInfo") {
      const info = ErrorInfo.decode(value);
      if (info.domain === DOMAIN) {
        parts.reason = info.reason;
        parts.metadata = info.metadata;
      }
    } else if (type === "google.rpc.BadRequest") {
      parts.field = BadRequest.decode(value).fieldViolations[0]?.field ?? "";
    } else if (type === "google.rpc.RetryInfo") {
      const delay = RetryInfo.decode(value).retryDelay;
      parts.retryAfter = delay === undefined ? undefined : delay.seconds + delay.nanos / 1e9;
    }
  }
  return new (byReason[parts.reason] ?? AstrocyteError)(status.message, parts);
}

/** The error of a failed call. */
export function errorFromCall(error: ServiceError): AstrocyteError {
  const details = error.metadata.get(DETAILS_KEY)[0];
  let status = Status.fromPartial({});
  if (details instanceof Buffer) {
    try {
      status = Status.decode(details);
    } catch {
      // Details that are no status say nothing; code and message remain.
    }
  }
  const id = error.metadata.get(REQUEST_ID_KEY)[0];
  return errorFromStatus({ ...status, code: error.code, message: error.details }, typeof id === "string" ? id : "");
}
