import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** The memory of Apache Curator's locks. The bench `memory` of the Rust crate describes its lines. */
final class CuratorMemory {
    private static final int FIRST = 100;

    private interface Make {
        Object one(int number) throws Exception;
    }

    private final CuratorFramework session;
    private final String path;
    private final int number;

    private CuratorMemory(String connectString, String path, int number) throws Exception {
        this.path = path;
        this.number = number;
        session = open(connectString);
    }

    public static void main(String[] arguments) throws Exception {
        CuratorMemory memory = new CuratorMemory(arguments[0], arguments[1], Integer.parseInt(arguments[2]));
        memory.measure("idle", memory::lock, "");
        memory.measure("used", each -> {
            InterProcessMutex lock = memory.lock(each);
            lock.acquire();
            lock.release();
            return lock;
        }, "");
        memory.measure("hold", each -> {
            InterProcessMutex lock = memory.lock(FIRST + memory.number + each);
            lock.acquire();
            return lock;
        }, "");
        String queue = memory.path + "/queue";
        new InterProcessMutex(open(arguments[0]), queue).acquire();
        memory.measure("waiter", each -> memory.waiter(queue), queue);
        Runtime.getRuntime().halt(0);
    }

    private static CuratorFramework open(String connectString) throws Exception {
        CuratorFramework session = CuratorFrameworkFactory.newClient(connectString, new RetryOneTime(100));
        Curator.connect(session);
        return session;
    }

    private InterProcessMutex lock(int each) {
        return new InterProcessMutex(session, path + "/" + each);
    }

    private Thread waiter(String queue) {
        InterProcessMutex lock = new InterProcessMutex(session, queue);
        Thread thread = new Thread(() -> {
            try {
                lock.acquire();
            } catch (Exception failure) {
                failure.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        });
        thread.start();
        return thread;
    }

    private void measure(String what, Make make, String queue) throws Exception {
        List<Object> kept = new ArrayList<>(FIRST + number);
        long before = 0;
        for (int each = 0; each < FIRST + number; each++) {
            if (each == FIRST) {
                until(queue, FIRST);
                before = heapInUse();
            }
            kept.add(make.one(each));
        }
        until(queue, FIRST + number);
        System.out.println(what + " " + (heapInUse() - before) / (double) kept.subList(FIRST, kept.size()).size());
    }

    /** Waits until so many waiters are in the queue, and the last of them has set its watch. */
    private void until(String queue, int waiters) throws Exception {
        while (!queue.isEmpty() && session.getChildren().forPath(queue).size() <= waiters) {
            Thread.sleep(10);
        }
        Thread.sleep(2000);
    }

    private static long heapInUse() {
        long least = Long.MAX_VALUE;
        for (int time = 0; time < 5; time++) {
            System.gc();
            least = Math.min(least, ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
        }
        return least;
    }
}
