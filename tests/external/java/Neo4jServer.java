import java.nio.file.Path;
import java.util.Map;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.harness.Neo4j;
import org.neo4j.harness.Neo4jBuilders;

/** A Neo4j server with authentication. It prints its address and runs until its standard input ends. */
class Neo4jServer {
    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        String password = arguments[1];
        try (Neo4j server = Neo4jBuilders.newInProcessBuilder(directory)
                .withDisabledServer()
                .withConfig(GraphDatabaseSettings.auth_enabled, true)
                .withConfig(GraphDatabaseSettings.pagecache_memory, 64L << 20)
                .build()) {
            server.databaseManagementService().database("system").executeTransactionally(
                    "ALTER USER neo4j SET PASSWORD $password CHANGE NOT REQUIRED", Map.of("password", password));
            System.out.println(server.boltURI());
            System.in.read();
        }
    }
}
