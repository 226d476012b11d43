import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.lang.reflect.Method;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.StandardLockInternalsDriver;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.KeeperException;

/** Contenders that use Apache Curator. The first page of the Rust crate describes their arguments. */
final class Contender implements Runnable {
    private static volatile boolean failed;

    private final String connectString;
    private final String path;
    private final String referee;
    private final int sessionTimeout;
    private final int turns;
    private final long stay;
    private final String mode;
    private final int number;
    private final String name;
    private CuratorFramework client;
    private BufferedReader answers;
    private Writer lines;

    private Contender(String[] arguments, String mode, int number) {
        connectString = arguments[0];
        path = arguments[1];
        referee = arguments[2];
        sessionTimeout = Integer.parseInt(arguments[3]);
        turns = Integer.parseInt(arguments[4]);
        stay = Long.parseLong(arguments[5]);
        this.mode = mode;
        this.number = number;
        name = "curator-" + mode + "-" + number;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("keeps-place-on-downgrade")) {
            System.out.println(keepsPlaceOnDowngrade());
            return;
        }
        Thread lifeline = new Thread(Contender::endWithStandardInput);
        lifeline.setDaemon(true);
        lifeline.start();
        List<Thread> threads = new ArrayList<>();
        for (int at = 6; at < arguments.length; at++) {
            String[] modeAndCount = arguments[at].split(":");
            for (int number = 0; number < Integer.parseInt(modeAndCount[1]); number++) {
                Thread thread = new Thread(new Contender(arguments, modeAndCount[0], number));
                threads.add(thread);
                thread.start();
            }
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Runtime.getRuntime().halt(failed ? 1 : 0);
    }

    /** Whether a downgraded reader has the writer's number, as from 5.5.0 on (CURATOR-621). */
    private static boolean keepsPlaceOnDowngrade() {
        for (Method method : StandardLockInternalsDriver.class.getDeclaredMethods()) {
            if (method.getName().equals("getSortingSequence")) {
                return true;
            }
        }
        return false;
    }

    private static void endWithStandardInput() {
        try {
            while (System.in.read() >= 0) {}
        } catch (IOException ended) {
            // It has ended all the same.
        }
        Runtime.getRuntime().halt(1);
    }

    @Override
    public void run() {
        try (Socket socket = new Socket(referee.split(":")[0], Integer.parseInt(referee.split(":")[1]));
                CuratorFramework client = CuratorFrameworkFactory.builder()
                        .connectString(connectString)
                        .sessionTimeoutMs(sessionTimeout)
                        .connectionTimeoutMs(sessionTimeout)
                        .retryPolicy(new ExponentialBackoffRetry(100, 5))
                        .defaultData(name.getBytes(StandardCharsets.UTF_8))
                        .build()) {
            socket.setTcpNoDelay(true);
            answers = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            lines = new OutputStreamWriter(socket.getOutputStream(), StandardCharsets.UTF_8);
            this.client = client;
            client.start();
            if (!client.blockUntilConnected(30, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no connection");
            }
            tell("ready " + name);
            switch (mode) {
                case "lock":
                    takeTurns(new InterProcessMutex(client, path), "exclusive");
                    break;
                case "read":
                    takeTurns(readWriteLock().readLock(), "shared");
                    break;
                case "write":
                    takeTurns(readWriteLock().writeLock(), "exclusive");
                    break;
                case "downgrade":
                    downgrade(readWriteLock());
                    break;
                case "latch":
                    lead();
                    break;
                default:
                    throw new IllegalArgumentException(mode);
            }
        } catch (Exception failure) {
            failed = true;
            failure.printStackTrace();
        }
    }

    private InterProcessReadWriteLock readWriteLock() {
        return new InterProcessReadWriteLock(client, path, name.getBytes(StandardCharsets.UTF_8));
    }

    private void takeTurns(InterProcessMutex lock, String kind) throws Exception {
        for (int turn = 0; turn < turns; turn++) {
            lock.acquire();
            tell("enter " + name + " " + kind + " " + znode(lockPath(lock)));
            if (turn % 5 == 0) {
                tellParticipants(lock.getParticipantNodes());
            }
            Thread.sleep(stay);
            tell("leave " + name);
            lock.release();
            pause(turn);
        }
    }

    private void downgrade(InterProcessReadWriteLock lock) throws Exception {
        for (int turn = 0; turn < turns; turn++) {
            lock.writeLock().acquire();
            tell("enter " + name + " exclusive " + znode(lockPath(lock.writeLock())));
            lock.readLock().acquire();
            tell("downgrade " + name);
            lock.writeLock().release();
            Thread.sleep(stay);
            tell("leave " + name);
            lock.readLock().release();
            pause(turn);
        }
    }

    private void lead() throws Exception {
        for (int turn = 0; turn < turns; turn++) {
            try (LeaderLatch latch = new LeaderLatch(client, path, name)) {
                latch.start();
                latch.await();
                tell("enter " + name + " exclusive " + znode(latch.getOurPath()));
                if (turn % 5 == 0) {
                    StringBuilder seen = new StringBuilder("sees " + name);
                    for (Participant participant : latch.getParticipants()) {
                        seen.append(' ').append(participant.getId());
                    }
                    tell(seen.toString());
                }
                Thread.sleep(stay);
                tell("leave " + name);
            }
            pause(turn);
        }
    }

    private void pause(int turn) throws InterruptedException {
        Thread.sleep((7 * number + 13 * turn) % 40);
    }

    private void tellParticipants(Collection<String> paths) throws Exception {
        StringBuilder seen = new StringBuilder("sees " + name);
        for (String participant : paths) {
            try {
                byte[] data = client.getData().forPath(participant);
                seen.append(' ').append(new String(data, StandardCharsets.UTF_8));
            } catch (KeeperException.NoNodeException gone) {
                // A contender that has gone since is no participant.
            }
        }
        tell(seen.toString());
    }

    /** Curator knows the path of the znode it holds, and in most versions keeps it to itself. */
    private static String lockPath(InterProcessMutex lock) throws Exception {
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

    private static String znode(String path) {
        return path.substring(path.lastIndexOf('/') + 1);
    }

    private void tell(String line) throws IOException {
        lines.write(line + "\n");
        lines.flush();
        if (answers.readLine() == null) {
            throw new IOException("the referee has gone");
        }
    }
}
