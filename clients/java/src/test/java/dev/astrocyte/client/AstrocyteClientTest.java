package dev.astrocyte.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.rpc.Code;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import com.google.rpc.Status;
import dev.astrocyte.v1.ExplainRequest;
import dev.astrocyte.v1.ListBanksRequest;
import dev.astrocyte.v1.RecallRequest;
import dev.astrocyte.v1.RetainItem;
import dev.astrocyte.v1.RetainRequest;
import dev.astrocyte.v1.StreamRetainRequest;
import dev.astrocyte.v1.StreamRetainResponse;
import dev.astrocyte.v1.WatchRequest;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

final class AstrocyteClientTest {
  private static final RecallRequest NOBODY =
      RecallRequest.newBuilder().setBankId("nobody").setQuery("anything?").build();

  private static AstrocyteClient client() {
    return AstrocyteClient.connect(System.getenv("ASTROCYTE_ADDRESS"));
  }

  @Test
  @EnabledIfEnvironmentVariable(named = "ASTROCYTE_ADDRESS", matches = ".+")
  void retainedIsRecalledAndStreamed() throws InterruptedException {
    String bank = "java-tests";
    try (AstrocyteClient client = client()) {
      var answers = new CopyOnWriteArrayList<StreamRetainResponse>();
      var done = new CountDownLatch(1);
      var requests =
          client.streamRetain(
              new StreamObserver<>() {
                @Override
                public void onNext(StreamRetainResponse answer) {
                  answers.add(answer);
                }

                @Override
                public void onError(Throwable error) {
                  done.countDown();
                }

                @Override
                public void onCompleted() {
                  done.countDown();
                }
              });
      for (String content : List.of("Ines lives in Porto.", "Callum lives in Edinburgh.")) {
        var item = RetainItem.newBuilder().setContent(content);
        requests.onNext(StreamRetainRequest.newBuilder().setBankId(bank).setItem(item).build());
      }
      requests.onCompleted();
      assertTrue(done.await(20, TimeUnit.SECONDS));
      assertEquals(List.of(true, true), answers.stream().map(StreamRetainResponse::hasResult).toList());
      var query = RecallRequest.newBuilder().setBankId(bank).setQuery("where does Ines live?").build();
      assertEquals("Ines lives in Porto.", client.recall(query).getHits(0).getText());
      var watch = WatchRequest.newBuilder().setBankId(bank).setAfterPosition(0).build();
      try (var changes = client.watch(watch)) {
        assertEquals(1, changes.next().getChange().getPosition());
      }
    }
  }

  @Test
  @EnabledIfEnvironmentVariable(named = "ASTROCYTE_ADDRESS", matches = ".+")
  void errorsHaveClasses() {
    try (AstrocyteClient client = client()) {
      var unknown = assertThrows(BankNotFoundException.class, () -> client.recall(NOBODY));
      assertEquals("nobody", unknown.metadata().get("bank_id"));
      assertFalse(unknown.requestId().isEmpty());
      var many = NOBODY.toBuilder().setMaxResults(1_000).build();
      assertEquals("max_results", assertThrows(InvalidArgumentException.class, () -> client.recall(many)).field());
      var late = client.withDeadline(Duration.ofNanos(1));
      assertThrows(DeadlineExceededException.class, () -> late.recall(NOBODY));
      try (var changes = client.watch(WatchRequest.newBuilder().setBankId("nobody").build())) {
        assertThrows(BankNotFoundException.class, changes::hasNext);
      }
    }
  }

  @Test
  void noServerIsUnavailable() throws IOException {
    // Port 1 is of a service that no machine here has.
    try (AstrocyteClient client = AstrocyteClient.builder("127.0.0.1:1").withoutRetries().connect()) {
      assertThrows(UnavailableException.class, () -> client.listBanks(ListBanksRequest.getDefaultInstance()));
    }
  }

  @Test
  void filesThatCannotBeReadAreRefused() {
    var builder = AstrocyteClient.builder("localhost:50051").ca(Path.of("missing.pem"));
    assertThrows(IOException.class, builder::connect);
  }

  @Test
  void detailsBecomeFields() {
    var info =
        ErrorInfo.newBuilder().setDomain("astrocyte.dev").setReason("LIMIT_REACHED").putMetadata("kind", "minute");
    var delay = com.google.protobuf.Duration.newBuilder().setSeconds(1).setNanos(500_000_000);
    var error =
        AstrocyteException.of(
            Status.newBuilder()
                .setCode(Code.RESOURCE_EXHAUSTED_VALUE)
                .setMessage("later")
                .addDetails(Any.pack(info.build()))
                .addDetails(Any.pack(RetryInfo.newBuilder().setRetryDelay(delay).build()))
                .build());
    assertEquals(LimitReachedException.class, error.getClass());
    assertEquals("minute", error.metadata().get("kind"));
    assertEquals(Duration.ofMillis(1_500), error.retryAfter().orElseThrow());
  }

  @Test
  void anotherDomainHasNoReasonHereAndABareCodeHasOne() {
    var info = ErrorInfo.newBuilder().setDomain("example.com").setReason("BANK_NOT_FOUND").build();
    var other =
        AstrocyteException.of(
            Status.newBuilder().setCode(Code.NOT_FOUND_VALUE).addDetails(Any.pack(info)).build());
    assertEquals(AstrocyteException.class, other.getClass());
    assertEquals("", other.reason());
    var bare = AstrocyteException.of(Status.newBuilder().setCode(Code.UNAVAILABLE_VALUE).build());
    assertEquals(UnavailableException.class, bare.getClass());
  }

  @Test
  void theBankOfARequestIsFound() {
    Rpc explain = Methods.RPCS.get("astrocyte.v1.MemoryService/Explain");
    assertEquals("nobody", explain.bankOf(ExplainRequest.newBuilder().setRecall(NOBODY).build()));
    Rpc retain = Methods.RPCS.get("astrocyte.v1.MemoryService/Retain");
    assertEquals(null, retain.bankOf(RetainRequest.newBuilder().setBankId("no bank").build()));
    assertEquals(36, retain.withRequestId(RetainRequest.getDefaultInstance()).getRequestId().length());
    var given = RetainRequest.newBuilder().setRequestId("mine").build();
    assertEquals("mine", retain.withRequestId(given).getRequestId());
  }
}
