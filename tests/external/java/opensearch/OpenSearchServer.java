import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/** An OpenSearch server of one node. It prints its address and runs until its standard input ends. */
class OpenSearchServer {
    static class Server extends Node {
        Server(Settings settings) {
            super(
                    InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "node"),
                    List.<Class<? extends Plugin>>of(
                            Netty4Plugin.class, CommonAnalysisPlugin.class, ReindexPlugin.class),
                    false);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
                .put("path.home", arguments[0])
                .put("http.port", arguments[1])
                .put("transport.port", "0")
                .put("network.host", "127.0.0.1")
                .put("discovery.type", "single-node")
                .put("transport.type", "netty4")
                .put("http.type", "netty4")
                // The disk of a developer may be full enough for a server that keeps data.
                .put("cluster.routing.allocation.disk.threshold_enabled", false)
                .build();
        try (Node node = new Server(settings).start()) {
            System.out.println("http://127.0.0.1:" + arguments[1]);
            System.in.read();
        }
    }
}
