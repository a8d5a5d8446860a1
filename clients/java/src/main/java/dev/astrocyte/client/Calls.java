package dev.astrocyte.client;

import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Makes the calls of a client. */
abstract class Calls implements AutoCloseable {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> BANK =
      Metadata.Key.of("x-astrocyte-bank", Metadata.ASCII_STRING_MARSHALLER);
  // Calls in progress have this long to end when the client is closed.
  private static final long CLOSE_SECONDS = 5;

  private final Settings settings;

  Calls(Settings settings) {
    this.settings = settings;
  }

  /**
   * The common part of the calls of a client.
   *
   * @param apiKey sent with every call; null sends none
   * @param timeout until a call fails that is no stream; null leaves it to the server
   * @param deadline replaces the timeout, for streams too; null does not
   * @param headers sent as metadata
   */
  record Settings(
      ManagedChannel channel,
      String apiKey,
      Duration timeout,
      Duration deadline,
      Map<String, String> headers) {}

  Settings settings() {
    return settings;
  }

  /** Closes the connection. Calls in progress are cancelled after some seconds. */
  @Override
  public void close() {
    settings.channel.shutdown();
    try {
      if (!settings.channel.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)) {
        settings.channel.shutdownNow();
      }
    } catch (InterruptedException e) {
      settings.channel.shutdownNow();
      Thread.currentThread().interrupt();
    }
  }

  <Q extends Message, R> R unary(MethodDescriptor<Q, R> method, Q given) {
    Rpc rpc = Methods.RPCS.get(method.getFullMethodName());
    Q request = rpc.withRequestId(given);
    CallOptions options = options(settings.deadline);
    if (settings.deadline == null && settings.timeout != null && Context.current().getDeadline() == null) {
      options = options(settings.timeout.plus(rpc.wait(request)));
    }
    try {
      return ClientCalls.blockingUnaryCall(channel(rpc.bankOf(request)), method, options, request);
    } catch (StatusRuntimeException e) {
      throw AstrocyteException.of(e);
    }
  }

  <Q extends Message, R> Responses<R> serverStream(MethodDescriptor<Q, R> method, Q request) {
    String bank = Methods.RPCS.get(method.getFullMethodName()).bankOf(request);
    Context.CancellableContext context = Context.current().withCancellation();
    Context previous = context.attach();
    try {
      Iterator<R> responses =
          ClientCalls.blockingServerStreamingCall(
              channel(bank), method, options(settings.deadline), request);
      return new Responses<>(responses, context);
    } finally {
      context.detach(previous);
    }
  }

  <Q, R> StreamObserver<Q> stream(MethodDescriptor<Q, R> method, StreamObserver<R> responses) {
    StreamObserver<R> translating =
        new StreamObserver<>() {
          @Override
          public void onNext(R response) {
            responses.onNext(response);
          }

          @Override
          public void onError(Throwable error) {
            boolean known = error instanceof StatusRuntimeException;
            responses.onError(known ? AstrocyteException.of((StatusRuntimeException) error) : error);
          }

          @Override
          public void onCompleted() {
            responses.onCompleted();
          }
        };
    return ClientCalls.asyncBidiStreamingCall(
        channel(null).newCall(method, options(settings.deadline)), translating);
  }

  private static CallOptions options(Duration deadline) {
    return deadline == null
        ? CallOptions.DEFAULT
        : CallOptions.DEFAULT.withDeadlineAfter(deadline.toNanos(), TimeUnit.NANOSECONDS);
  }

  private Channel channel(String bank) {
    Metadata metadata = new Metadata();
    if (settings.apiKey != null) {
      metadata.put(AUTHORIZATION, "Bearer " + settings.apiKey);
    }
    if (bank != null) {
      metadata.put(BANK, bank);
    }
    settings.headers.forEach(
        (name, value) -> metadata.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value));
    return ClientInterceptors.intercept(
        settings.channel, MetadataUtils.newAttachHeadersInterceptor(metadata));
  }
}
