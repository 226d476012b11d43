import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/** The role `set`: a client of a set that a lock guards. */
final class SetClient {
    private static final long PATIENCE_SECONDS = 15;

    private SetClient() {}

    static void work(String connectString, int sessionTimeout, String path) throws Exception {
        CuratorFramework client = Peer.session(connectString, sessionTimeout)
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
        Peer.connect(client);
        String[] answer = Peer.ask(Peer.ready());
        while (answer[0].equals("again")) {
            Thread.sleep(Long.parseLong(answer[1]));
            answer = turn(client, new InterProcessMutex(client, path), doubts);
        }
    }

    private static String[] turn(CuratorFramework client, InterProcessMutex mutex, AtomicLong doubts)
            throws Exception {
        String[] answer;
        try {
            if (!mutex.acquire(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                return Peer.ask("failed no lock in time");
            }
            // On Linux, this is CLOCK_MONOTONIC, which all processes of the machine share.
            long acquired = System.nanoTime();
            long before = doubts.get();
            // Curator has no token. This is the number that its znode has on the server.
            Stat stat = client.checkExists().forPath(Peer.lockPath(mutex));
            if (stat == null) {
                release(mutex);
                return Peer.ask("failed the znode is gone");
            }
            answer = Peer.ask("read " + stat.getCzxid() + " " + acquired);
            Thread.sleep(Long.parseLong(answer[1]));
            long began = System.nanoTime();
            boolean holds = mutex.isAcquiredInThisProcess() && doubts.get() == before;
            Peer.say("look " + holds + " " + began);
            Thread.sleep(Long.parseLong(answer[2]));
            answer = Peer.ask("write");
        } catch (Exception failure) {
            release(mutex);
            return Peer.ask("failed " + failure.toString().replace('\n', ' '));
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
}
