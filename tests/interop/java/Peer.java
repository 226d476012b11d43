import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.StandardLockInternalsDriver;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Apache Curator in a role. The first page of the Rust crate describes the arguments and the lines. */
final class Peer {
    interface Orders {
        void obey(String[] words) throws Exception;
    }

    interface Work {
        void run() throws Exception;
    }

    private static final BufferedReader LINES =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private Peer() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("keeps-place-on-downgrade")) {
            System.out.println(keepsPlaceOnDowngrade());
            return;
        }
        // Any failure ends the process.
        endAtFailure((thread, failure) -> {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        String connectString = arguments[0];
        int sessionTimeout = Integer.parseInt(arguments[1]);
        String[] rest = Arrays.copyOfRange(arguments, 3, arguments.length);
        switch (arguments[2]) {
            case "contend":
                Contender.contend(connectString, sessionTimeout, rest);
                break;
            case "work":
                new Worker(connectString, sessionTimeout).work();
                break;
            case "fleet":
                new Fleet(connectString, sessionTimeout, rest).work();
                break;
            case "set":
                SetClient.work(connectString, sessionTimeout, rest[0]);
                break;
            default:
                throw new IllegalArgumentException(arguments[2]);
        }
        Runtime.getRuntime().halt(0);
    }

    static void endAtFailure(Thread.UncaughtExceptionHandler handler) {
        Thread.setDefaultUncaughtExceptionHandler(handler);
    }

    /** A thread that has begun. Its failure is that of the process. */
    static Thread start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
        });
        thread.start();
        return thread;
    }

    static String ready() throws IOException {
        return "ready Apache Curator " + version() + " on Java " + System.getProperty("java.version");
    }

    /** Reads orders, each on a line, until the input ends. */
    static void obey(Orders orders) throws Exception {
        say(ready());
        for (String line = LINES.readLine(); line != null; line = LINES.readLine()) {
            orders.obey(line.split(" "));
        }
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static String[] ask(String line) throws IOException {
        say(line);
        String answer = LINES.readLine();
        if (answer == null) {
            Runtime.getRuntime().halt(1);
        }
        return answer.split(" ");
    }

    static void endWithInput() throws IOException {
        while (LINES.readLine() != null) {}
        Runtime.getRuntime().halt(1);
    }

    static CuratorFrameworkFactory.Builder session(String connectString, int timeout) {
        return CuratorFrameworkFactory.builder()
                .connectString(connectString)
                .sessionTimeoutMs(timeout)
                .connectionTimeoutMs(timeout)
                .retryPolicy(new ExponentialBackoffRetry(100, 5));
    }

    static CuratorFramework connect(CuratorFramework session) throws InterruptedException {
        session.start();
        if (!session.blockUntilConnected(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection");
        }
        return session;
    }

    /** Curator knows the path of the znode it holds, and in most versions keeps it to itself. */
    static String lockPath(InterProcessMutex lock) throws Exception {
        Class<?> type = lock.getClass();
        while (true) {
            try {
                Method method = type.getDeclaredMethod("getLockPath");
                method.setAccessible(true);
                return (String) method.invoke(lock);
            } catch (NoSuchMethodException inherited) {
                type = type.getSuperclass();
            }
        }
    }

    /** Whether a downgraded reader has the writer's number, as from 5.5.0 on (CURATOR-621). */
    private static boolean keepsPlaceOnDowngrade() {
        Method[] methods = StandardLockInternalsDriver.class.getDeclaredMethods();
        return Arrays.stream(methods).anyMatch(method -> method.getName().equals("getSortingSequence"));
    }

    /** The version that Maven has written into the jar. */
    private static String version() throws IOException {
        String path = "/META-INF/maven/org.apache.curator/curator-recipes/pom.properties";
        Properties properties = new Properties();
        try (InputStream stream = InterProcessMutex.class.getResourceAsStream(path)) {
            if (stream != null) {
                properties.load(stream);
            }
        }
        return properties.getProperty("version", "of an unknown version");
    }
}
