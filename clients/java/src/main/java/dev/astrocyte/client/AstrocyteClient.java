package dev.astrocyte.client;

import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/**
 * Calls a server; safe for use by several threads.
 *
 * <pre>{@code
 * try (var client = AstrocyteClient.connect("localhost:50051")) {
 *   var found = client.recall(RecallRequest.newBuilder().setBankId("family").setQuery("allergies?").build());
 * }
 * }</pre>
 */
public final class AstrocyteClient extends Methods {
  /** Longer than the deadlines that the server sets by itself, so that its own error comes first. */
  public static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(30);

  // The largest answer that a server can be set to send.
  private static final int MAX_RECEIVE_BYTES = 64 * 1024 * 1024;

  private AstrocyteClient(Settings settings) {
    super(settings);
  }

  /** Connects in plain text, without a credential. Nothing is sent before the first call. */
  public static AstrocyteClient connect(String address) {
    try {
      return builder(address).connect();
    } catch (IOException e) {
      throw new IllegalStateException("no file is read without certificates", e);
    }
  }

  /** Returns the options of a connection to a server at host:port. */
  public static Builder builder(String address) {
    return new Builder(address);
  }

  /** Returns a client on the same connection whose calls have this deadline instead of the timeout, streams too. */
  public AstrocyteClient withDeadline(Duration deadline) {
    Settings s = settings();
    return new AstrocyteClient(new Settings(s.channel(), s.apiKey(), s.timeout(), deadline, s.headers()));
  }

  /** Returns a client on the same connection whose calls send this metadata too. */
  public AstrocyteClient withHeader(String name, String value) {
    Settings s = settings();
    Map<String, String> headers = new HashMap<>(s.headers());
    headers.put(name, value);
    return new AstrocyteClient(
        new Settings(s.channel(), s.apiKey(), s.timeout(), s.deadline(), Map.copyOf(headers)));
  }

  /** Options of a connection. */
  public static final class Builder {
    private final String address;
    private String apiKey;
    private boolean tls;
    private Path ca;
    private Path certificate;
    private Path key;
    private Duration timeout = DEFAULT_TIMEOUT;
    private boolean retries = true;

    private Builder(String address) {
      this.address = address;
    }

    /** Sends an API key or token with every call. Use it with TLS, except to this machine. */
    public Builder apiKey(String value) {
      apiKey = value;
      return this;
    }

    /** Uses TLS with the roots of the system. {@link #ca} and {@link #certificate} imply it. */
    public Builder tls() {
      tls = true;
      return this;
    }

    /** Trusts the roots of a PEM file instead of those of the system. */
    public Builder ca(Path file) {
      ca = file;
      return tls();
    }

    /** Presents the certificate of a PEM file, with its chain; the other is the PEM file of its private key. */
    public Builder certificate(Path file, Path keyFile) {
      certificate = Objects.requireNonNull(file, "certificate");
      key = Objects.requireNonNull(keyFile, "key");
      return tls();
    }

    /** Sets the time until a call fails that is no stream; null leaves it to the server. */
    public Builder timeout(Duration value) {
      timeout = value;
      return this;
    }

    /** Repeats no call. By default, calls that the server could not take are repeated. */
    public Builder withoutRetries() {
      retries = false;
      return this;
    }

    /**
     * Connects. Nothing is sent before the first call.
     *
     * @throws IOException if a file cannot be read or is not what it should be
     */
    public AstrocyteClient connect() throws IOException {
      ManagedChannelBuilder<?> channel =
          Grpc.newChannelBuilder(address, credentials())
              .maxInboundMessageSize(MAX_RECEIVE_BYTES)
              .defaultServiceConfig(ServiceConfig.VALUE);
      ManagedChannel built = (retries ? channel.enableRetry() : channel.disableRetry()).build();
      return new AstrocyteClient(new Settings(built, apiKey, timeout, null, Map.of()));
    }

    private ChannelCredentials credentials() throws IOException {
      if (!tls) {
        return InsecureChannelCredentials.create();
      }
      TlsChannelCredentials.Builder builder = TlsChannelCredentials.newBuilder();
      if (ca != null) {
        builder.trustManager(ca.toFile());
      }
      if (certificate != null) {
        builder.keyManager(certificate.toFile(), key.toFile());
      }
      return builder.build();
    }
  }
}
