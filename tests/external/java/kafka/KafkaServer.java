import java.io.FileReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.common.utils.Time;

/** A Kafka server of one node, broker and controller in one. It says "ready" and runs until its standard input ends. */
class KafkaServer {
    public static void main(String[] arguments) throws Exception {
        String file = arguments[0];
        Properties properties = new Properties();
        try (FileReader reader = new FileReader(file)) {
            properties.load(reader);
        }
        if (!Files.exists(Path.of(properties.getProperty("log.dirs"), "meta.properties"))) {
            String[] format = {"format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qk", "--config", file};
            if (StorageTool.execute(format, System.out) != 0) {
                System.exit(1);
            }
        }
        KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(properties, false), Time.SYSTEM);
        server.startup();
        System.out.println("ready");
        System.in.read();
        server.shutdown();
        server.awaitShutdown();
    }
}
