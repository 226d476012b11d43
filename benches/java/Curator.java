import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** What the programs with Apache Curator share: their sessions, and the orders that they obey. */
final class Curator {
    interface Orders {
        void obey(String order) throws Exception;
    }

    private Curator() {}

    /** Reads orders, each on a line, until the input ends. */
    static void obey(Orders orders) throws Exception {
        say("ready Apache Curator " + version() + " on Java " + System.getProperty("java.version"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            orders.obey(line);
        }
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** A session that is not connected yet. */
    static CuratorFramework session(String connectString, int timeout) {
        return CuratorFrameworkFactory.builder()
                .connectString(connectString)
                .sessionTimeoutMs(timeout)
                .connectionTimeoutMs(timeout)
                .retryPolicy(new ExponentialBackoffRetry(100, 5))
                .build();
    }

    static void connect(CuratorFramework session) throws InterruptedException {
        session.start();
        if (!session.blockUntilConnected(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection");
        }
    }

    private static String version() throws IOException {
        String properties = "/META-INF/maven/org.apache.curator/curator-recipes/pom.properties";
        try (InputStream stream = InterProcessMutex.class.getResourceAsStream(properties)) {
            Properties values = new Properties();
            values.load(stream);
            return values.getProperty("version");
        }
    }
}
