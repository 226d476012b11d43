import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.zookeeper.KeeperException;

/** The role `contend`: contenders that report to a referee. */
final class Contender {
    private final String path;
    private final int turns;
    private final long stay;
    private final int number;
    private final String name;
    private final CuratorFramework client;
    private final BufferedReader answers;
    private final Writer lines;

    private Contender(CuratorFramework client, Socket referee, String[] arguments, String name, int number)
            throws IOException {
        this.client = client;
        this.name = name;
        this.number = number;
        path = arguments[0];
        turns = Integer.parseInt(arguments[2]);
        stay = Long.parseLong(arguments[3]);
        referee.setTcpNoDelay(true);
        answers = new BufferedReader(new InputStreamReader(referee.getInputStream(), StandardCharsets.UTF_8));
        lines = new OutputStreamWriter(referee.getOutputStream(), StandardCharsets.UTF_8);
    }

    static void contend(String connectString, int sessionTimeout, String[] arguments) throws Exception {
        Peer.start(Peer::endWithInput);
        List<Thread> threads = new ArrayList<>();
        for (int at = 4; at < arguments.length; at++) {
            String mode = arguments[at].split(":")[0];
            for (int count = 0; count < Integer.parseInt(arguments[at].split(":")[1]); count++) {
                int number = count;
                threads.add(Peer.start(() -> run(connectString, sessionTimeout, arguments, mode, number)));
            }
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void run(String connectString, int timeout, String[] arguments, String mode, int number)
            throws Exception {
        String name = "curator-" + mode + "-" + number;
        byte[] data = name.getBytes(StandardCharsets.UTF_8);
        String[] referee = arguments[1].split(":");
        try (Socket socket = new Socket(referee[0], Integer.parseInt(referee[1]));
                CuratorFramework client =
                        Peer.connect(Peer.session(connectString, timeout).defaultData(data).build())) {
            new Contender(client, socket, arguments, name, number).takeTurns(mode);
        }
    }

    private void takeTurns(String mode) throws Exception {
        InterProcessReadWriteLock both =
                new InterProcessReadWriteLock(client, path, name.getBytes(StandardCharsets.UTF_8));
        tell("ready " + name);
        for (int turn = 0; turn < turns; turn++) {
            switch (mode) {
                case "lock":
                    turn(new InterProcessMutex(client, path), "exclusive", turn);
                    break;
                case "read":
                    turn(both.readLock(), "shared", turn);
                    break;
                case "write":
                    turn(both.writeLock(), "exclusive", turn);
                    break;
                case "downgrade":
                    downgrade(both);
                    break;
                case "latch":
                    lead(turn);
                    break;
                default:
                    throw new IllegalArgumentException(mode);
            }
            Thread.sleep((7 * number + 13 * turn) % 40);
        }
    }

    private void turn(InterProcessMutex lock, String kind, int turn) throws Exception {
        lock.acquire();
        enter(kind, Peer.lockPath(lock));
        if (turn % 5 == 0) {
            see(data(lock.getParticipantNodes()));
        }
        leave();
        lock.release();
    }

    private void downgrade(InterProcessReadWriteLock lock) throws Exception {
        lock.writeLock().acquire();
        enter("exclusive", Peer.lockPath(lock.writeLock()));
        lock.readLock().acquire();
        tell("downgrade " + name);
        lock.writeLock().release();
        leave();
        lock.readLock().release();
    }

    private void lead(int turn) throws Exception {
        try (LeaderLatch latch = new LeaderLatch(client, path, name)) {
            latch.start();
            latch.await();
            enter("exclusive", latch.getOurPath());
            if (turn % 5 == 0) {
                List<String> ids = new ArrayList<>();
                for (Participant participant : latch.getParticipants()) {
                    ids.add(participant.getId());
                }
                see(ids);
            }
            leave();
        }
    }

    private void enter(String kind, String path) throws IOException {
        tell("enter " + name + " " + kind + " " + path.substring(path.lastIndexOf('/') + 1));
    }

    private void leave() throws Exception {
        Thread.sleep(stay);
        tell("leave " + name);
    }

    private void see(List<String> contenders) throws IOException {
        tell("sees " + name + " " + String.join(" ", contenders));
    }

    private List<String> data(Collection<String> paths) throws Exception {
        List<String> data = new ArrayList<>();
        for (String path : paths) {
            try {
                data.add(new String(client.getData().forPath(path), StandardCharsets.UTF_8));
            } catch (KeeperException.NoNodeException gone) {
                // A contender that has gone since is no participant.
            }
        }
        return data;
    }

    private void tell(String line) throws IOException {
        lines.write(line + "\n");
        lines.flush();
        if (answers.readLine() == null) {
            throw new IOException("the referee has gone");
        }
    }
}
