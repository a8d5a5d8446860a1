package dev.astrocyte.client;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import io.grpc.stub.StreamObserver;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Driver of the conformance test: reads calls as lines of JSON and writes their outcomes. */
final class ConformanceDriver {
  private static final Gson JSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

  private ConformanceDriver() {}

  public static void main(String[] arguments) throws Exception {
    Map<String, AstrocyteClient> clients = new HashMap<>();
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Step step = JSON.fromJson(line, Step.class);
      String name = step.connection.toString();
      if (!clients.containsKey(name)) {
        clients.put(name, connect(step.connection));
      }
      System.out.println(JSON.toJson(run(clients.get(name), step)));
    }
    clients.values().forEach(AstrocyteClient::close);
  }

  private static final class Step {
    JsonObject connection;
    String method;
    String kind;
    List<String> requests;
    Integer take;
    Double deadline;
    Map<String, String> headers;
  }

  private static AstrocyteClient connect(JsonObject options) throws Exception {
    var builder = AstrocyteClient.builder(options.get("address").getAsString());
    if (options.has("api_key")) {
      builder.apiKey(options.get("api_key").getAsString());
    }
    if (options.has("tls") && options.get("tls").getAsBoolean()) {
      builder.tls();
    }
    if (options.has("ca")) {
      builder.ca(Path.of(options.get("ca").getAsString()));
    }
    if (options.has("certificate")) {
      builder.certificate(
          Path.of(options.get("certificate").getAsString()), Path.of(options.get("key").getAsString()));
    }
    if (options.has("retries") && !options.get("retries").getAsBoolean()) {
      builder.withoutRetries();
    }
    return builder.connect();
  }

  private static Map<String, Object> run(AstrocyteClient shared, Step step) throws Exception {
    AstrocyteClient client = shared;
    if (step.deadline != null) {
      client = client.withDeadline(Duration.ofMillis(Math.round(step.deadline * 1_000)));
    }
    if (step.headers != null) {
      for (var header : step.headers.entrySet()) {
        client = client.withHeader(header.getKey(), header.getValue());
      }
    }
    String name = Character.toLowerCase(step.method.charAt(0)) + step.method.substring(1);
    Method method =
        Arrays.stream(Methods.class.getMethods()).filter(m -> m.getName().equals(name)).findFirst().orElseThrow();
    try {
      List<String> found = new ArrayList<>();
      for (Message message : step.kind.equals("stream") ? stream(client, method, step) : call(client, method, step)) {
        found.add(Base64.getEncoder().encodeToString(message.toByteArray()));
      }
      return Map.of("responses", found);
    } catch (AstrocyteException e) {
      return Map.of("error", failure(e));
    }
  }

  private static List<Message> call(AstrocyteClient client, Method method, Step step) throws Exception {
    Object answer;
    try {
      answer = method.invoke(client, decode(method.getParameterTypes()[0], step.requests.get(0)));
    } catch (InvocationTargetException e) {
      throw e.getCause() instanceof AstrocyteException known ? known : e;
    }
    if (!(answer instanceof Responses<?> responses)) {
      return List.of((Message) answer);
    }
    List<Message> found = new ArrayList<>();
    try (responses) {
      while ((step.take == null || found.size() < step.take) && responses.hasNext()) {
        found.add((Message) responses.next());
      }
    }
    return found;
  }

  @SuppressWarnings("unchecked")
  private static List<Message> stream(AstrocyteClient client, Method method, Step step) throws Exception {
    var type = (ParameterizedType) method.getGenericReturnType();
    var requestType = (Class<?>) type.getActualTypeArguments()[0];
    List<Message> found = new ArrayList<>();
    var done = new CompletableFuture<List<Message>>();
    StreamObserver<Message> responses =
        new StreamObserver<>() {
          @Override
          public void onNext(Message response) {
            found.add(response);
          }

          @Override
          public void onError(Throwable error) {
            done.completeExceptionally(error);
          }

          @Override
          public void onCompleted() {
            done.complete(found);
          }
        };
    var requests = (StreamObserver<Object>) method.invoke(client, responses);
    for (String raw : step.requests) {
      requests.onNext(decode(requestType, raw));
    }
    requests.onCompleted();
    try {
      return done.join();
    } catch (java.util.concurrent.CompletionException e) {
      throw e.getCause() instanceof AstrocyteException known ? known : e;
    }
  }

  private static Object decode(Class<?> type, String raw) throws Exception {
    var parser = (Parser<?>) type.getMethod("parser").invoke(null);
    return parser.parseFrom(Base64.getDecoder().decode(raw));
  }

  private static Map<String, Object> failure(AstrocyteException error) {
    Map<String, Object> parts = new HashMap<>();
    parts.put("code", error.code().value());
    parts.put("kind", error.getClass().getSimpleName().replaceFirst("Exception$", ""));
    parts.put("reason", error.reason());
    parts.put("message", error.getMessage());
    parts.put("metadata", error.metadata());
    parts.put("field", error.field());
    parts.put("retry_after", error.retryAfter().map(delay -> delay.toMillis() / 1_000.0).orElse(null));
    parts.put("request_id", error.requestId());
    return parts;
  }
}
