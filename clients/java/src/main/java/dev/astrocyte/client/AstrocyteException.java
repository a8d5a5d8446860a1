package dev.astrocyte.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import com.google.rpc.Status;
import io.grpc.Metadata;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/**
 * A failed call. Its class is that of its reason; a reason that this version does not know has this class.
 */
public class AstrocyteException extends RuntimeException {
  private static final String DOMAIN = "astrocyte.dev";
  private static final Metadata.Key<String> REQUEST_ID =
      Metadata.Key.of("x-request-id", Metadata.ASCII_STRING_MARSHALLER);
  // Reasons of statuses without details: they come from gRPC, a proxy or the limits below the server's code.
  private static final Map<Code, String> BARE_REASONS =
      Map.of(
          Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED",
          Code.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE",
          Code.UNAUTHENTICATED, "UNAUTHENTICATED",
          Code.UNAVAILABLE, "UNAVAILABLE",
          Code.UNIMPLEMENTED, "NOT_SUPPORTED");

  private final transient Parts parts;

  AstrocyteException(Parts parts) {
    super(parts.message());
    this.parts = parts;
  }

  /** Returns the code of gRPC. */
  public Code code() {
    return parts.code();
  }

  /** Returns the reason, such as "BANK_NOT_FOUND"; empty if there is none. */
  public String reason() {
    return parts.reason();
  }

  /** Returns each variable part of the message. */
  public Map<String, String> metadata() {
    return parts.metadata();
  }

  /** Returns the path of the invalid field of the request; empty if it is not about a field. */
  public String field() {
    return parts.field();
  }

  /** Returns the time to wait before another try, if the server says it. */
  public Optional<Duration> retryAfter() {
    return Optional.ofNullable(parts.retryAfter());
  }

  /** Returns the id of the call in the log of the server; empty if it has none. */
  public String requestId() {
    return parts.requestId();
  }

  /** Returns the error of a status, such as that of an item of a stream. */
  public static AstrocyteException of(Status status) {
    return of(status, "");
  }

  static AstrocyteException of(StatusRuntimeException error) {
    Metadata trailers = error.getTrailers();
    String id = trailers == null ? null : trailers.get(REQUEST_ID);
    Status found = StatusProto.fromThrowable(error);
    Status status =
        (found == null ? Status.newBuilder() : found.toBuilder())
            .setCode(error.getStatus().getCode().value())
            .setMessage(Optional.ofNullable(error.getStatus().getDescription()).orElse(""))
            .build();
    return of(status, id == null ? "" : id);
  }

  private static AstrocyteException of(Status status, String requestId) {
    Code code = io.grpc.Status.fromCodeValue(status.getCode()).getCode();
    ErrorInfo info = unpack(status, ErrorInfo.class).orElse(ErrorInfo.getDefaultInstance());
    boolean own = info.getDomain().equals(DOMAIN);
    String field =
        unpack(status, BadRequest.class)
            .flatMap(request -> request.getFieldViolationsList().stream().findFirst())
            .map(BadRequest.FieldViolation::getField)
            .orElse("");
    Duration retryAfter =
        unpack(status, RetryInfo.class)
            .map(RetryInfo::getRetryDelay)
            .map(delay -> Duration.ofSeconds(delay.getSeconds(), delay.getNanos()))
            .orElse(null);
    return Reasons.exception(
        new Parts(
            code,
            own ? info.getReason() : BARE_REASONS.getOrDefault(code, ""),
            status.getMessage(),
            own ? info.getMetadataMap() : Map.of(),
            field,
            retryAfter,
            requestId));
  }

  private static <T extends Message> Optional<T> unpack(Status status, Class<T> kind) {
    for (Any detail : status.getDetailsList()) {
      if (detail.is(kind)) {
        try {
          return Optional.of(detail.unpack(kind));
        } catch (InvalidProtocolBufferException e) {
          return Optional.empty();
        }
      }
    }
    return Optional.empty();
  }

  record Parts(
      Code code,
      String reason,
      String message,
      Map<String, String> metadata,
      String field,
      Duration retryAfter,
      String requestId) {}
}
