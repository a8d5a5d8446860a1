package dev.astrocyte.client;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Duration;
import com.google.protobuf.Message;
import java.util.UUID;
import java.util.regex.Pattern;

/**
 * One RPC of the protocol.
 *
 * @param bank path of the field that names its bank; empty without one
 * @param hasRequestId true if an empty request_id is filled, so that a repeated call takes effect once
 * @param hasTimeout true if the request has the time that the server waits
 * @param extraSeconds added to the default timeout
 */
record Rpc(String bank, boolean hasRequestId, boolean hasTimeout, long extraSeconds) {
  // Ids of banks, as the protocol describes them. Others are left to the server, whose error names the field.
  private static final Pattern BANK_ID = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}");

  /** Returns the bank that a request names; null if it names none. */
  String bankOf(Message request) {
    if (bank.isEmpty()) {
      return null;
    }
    Object value = request;
    for (String name : bank.split("\\.")) {
      value = ((Message) value).getField(field((Message) value, name));
    }
    return BANK_ID.matcher((String) value).matches() ? (String) value : null;
  }

  /** Returns the request, with an id if it should have one and has none. */
  @SuppressWarnings("unchecked")
  <T extends Message> T withRequestId(T request) {
    if (!hasRequestId) {
      return request;
    }
    FieldDescriptor id = field(request, "request_id");
    if (!request.getField(id).equals("")) {
      return request;
    }
    return (T) request.toBuilder().setField(id, UUID.randomUUID().toString()).build();
  }

  /** Returns the time that the server takes for the call beyond the default timeout. */
  java.time.Duration wait(Message request) {
    if (hasTimeout) {
      FieldDescriptor timeout = field(request, "timeout");
      if (request.hasField(timeout)) {
        Duration given = (Duration) request.getField(timeout);
        java.time.Duration wait = java.time.Duration.ofSeconds(given.getSeconds(), given.getNanos());
        return wait.isNegative() ? java.time.Duration.ZERO : wait;
      }
    }
    return java.time.Duration.ofSeconds(extraSeconds);
  }

  private static FieldDescriptor field(Message message, String name) {
    return message.getDescriptorForType().findFieldByName(name);
  }
}
