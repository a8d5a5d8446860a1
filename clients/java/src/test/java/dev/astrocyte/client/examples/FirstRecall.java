package dev.astrocyte.client.examples;

import dev.astrocyte.client.AstrocyteClient;
import dev.astrocyte.v1.MemoryHit;
import dev.astrocyte.v1.RecallRequest;
import dev.astrocyte.v1.RetainRequest;
import java.util.List;

/**
 * Stores two memories and recalls the relevant one. The server is at $ASTROCYTE_ADDRESS, by default localhost:50051.
 */
public final class FirstRecall {
  private FirstRecall() {}

  public static void main(String[] arguments) {
    String address = System.getenv().getOrDefault("ASTROCYTE_ADDRESS", "localhost:50051");
    String bank = "family-java";
    try (AstrocyteClient client = AstrocyteClient.connect(address)) {
      for (String content : List.of("Mara is allergic to sesame, not to nuts.", "Mara plays the cello.")) {
        client.retain(RetainRequest.newBuilder().setBankId(bank).setContent(content).build());
      }
      var query = RecallRequest.newBuilder().setBankId(bank).setQuery("what is Mara allergic to?").build();
      for (MemoryHit hit : client.recall(query).getHitsList()) {
        System.out.printf("%.2f  %s%n", hit.getScore(), hit.getText());
      }
    }
  }
}
