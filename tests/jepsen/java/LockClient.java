import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/** A client of the set that uses Apache Curator. The module `client` of the Rust crate describes it. */
final class LockClient {
    private static final long PATIENCE_SECONDS = 15;

    private static final BufferedReader ANSWERS =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private LockClient() {}

    public static void main(String[] arguments) throws Exception {
        int sessionTimeout = Integer.parseInt(arguments[2]);
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(arguments[0])
                .sessionTimeoutMs(sessionTimeout)
                .connectionTimeoutMs(sessionTimeout)
                .retryPolicy(new ExponentialBackoffRetry(100, 3))
                .build();
        // How often the connection was not known to be there. Curator's documentation asks holders
        // to stop at SUSPENDED.
        AtomicLong doubts = new AtomicLong();
        client.getConnectionStateListenable().addListener((ignored, state) -> {
            if (state != ConnectionState.CONNECTED && state != ConnectionState.RECONNECTED) {
                doubts.incrementAndGet();
            }
        });
        client.start();
        client.blockUntilConnected(30, TimeUnit.SECONDS);
        String[] answer = ask("ready Apache Curator " + version());
        while (answer[0].equals("again")) {
            Thread.sleep(Long.parseLong(answer[1]));
            InterProcessMutex mutex = new InterProcessMutex(client, arguments[1]);
            answer = turn(client, mutex, doubts);
        }
        Runtime.getRuntime().halt(0);
    }

    private static String[] turn(CuratorFramework client, InterProcessMutex mutex, AtomicLong doubts)
            throws Exception {
        String[] answer;
        try {
            if (!mutex.acquire(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                return ask("failed no lock in time");
            }
            // On Linux, this is CLOCK_MONOTONIC, which all processes of the machine share.
            long acquired = System.nanoTime();
            long before = doubts.get();
            // Curator has no token. This is the number that its znode has on the server.
            Stat stat = client.checkExists().forPath(lockPath(mutex));
            if (stat == null) {
                release(mutex);
                return ask("failed the znode is gone");
            }
            answer = ask("read " + stat.getCzxid() + " " + acquired);
            Thread.sleep(Long.parseLong(answer[1]));
            long began = System.nanoTime();
            boolean holds = mutex.isAcquiredInThisProcess() && doubts.get() == before;
            say("look " + holds + " " + began);
            Thread.sleep(Long.parseLong(answer[2]));
            answer = ask("write");
        } catch (Exception failure) {
            release(mutex);
            return ask("failed " + failure.toString().replace('\n', ' '));
        }
        release(mutex);
        return answer;
    }

    private static void release(InterProcessMutex mutex) {
        try {
            if (mutex.isAcquiredInThisProcess()) {
                mutex.release();
            }
        } catch (Exception failure) {
            // The session has ended, and the znode with it, or Curator deletes in the background.
        }
    }

    private static String lockPath(InterProcessMutex mutex) throws Exception {
        Method method = InterProcessMutex.class.getDeclaredMethod("getLockPath");
        method.setAccessible(true);
        return (String) method.invoke(mutex);
    }

    /** The version that Maven has written into the jar. */
    private static String version() throws java.io.IOException {
        String path = "/META-INF/maven/org.apache.curator/curator-recipes/pom.properties";
        java.util.Properties properties = new java.util.Properties();
        try (java.io.InputStream of = InterProcessMutex.class.getResourceAsStream(path)) {
            if (of != null) {
                properties.load(of);
            }
        }
        return properties.getProperty("version", "of an unknown version");
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static String[] ask(String line) throws Exception {
        say(line);
        String answer = ANSWERS.readLine();
        if (answer == null) {
            Runtime.getRuntime().halt(1);
        }
        return answer.split(" ");
    }
}
