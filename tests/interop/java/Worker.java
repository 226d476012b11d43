import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** The role `work`: contenders that take turns, and a queue behind a holder. */
final class Worker {
    private static final int PERMITS = 5;
    private static final int SESSIONS_OF_WAITERS = 4;

    private interface Turn {
        void take(Runnable held) throws Exception;
    }

    private final String connectString;
    private final int sessionTimeout;
    private final List<CuratorFramework> sessions = new ArrayList<>();
    private final Map<String, InterProcessMutex> holders = new HashMap<>();
    private Queue queue;

    Worker(String connectString, int sessionTimeout) {
        this.connectString = connectString;
        this.sessionTimeout = sessionTimeout;
    }

    void work() throws Exception {
        Peer.obey(this::obey);
        // A contender that still waits waits in vain.
        Peer.endAtFailure((thread, failure) -> {});
        for (CuratorFramework session : sessions) {
            session.close();
        }
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "run":
                run(turns(words[1], words[2], Integer.parseInt(words[3])), Long.parseLong(words[4]));
                break;
            case "queue":
                if (queue == null) {
                    queue = new Queue(words[1], words[2]);
                }
                queue.add(Integer.parseInt(words[3]));
                Peer.say("queued");
                break;
            case "release":
                Peer.say("done " + queue.release() + " " + queue.waiters() + " " + queue.waiters());
                queue = null;
                break;
            case "nest":
                InterProcessMutex outer = new InterProcessMutex(session(0), words[1]);
                InterProcessMutex inner = new InterProcessMutex(session(0), words[2]);
                Peer.start(() -> nest(outer, inner));
                break;
            case "memory":
                Peer.say("memory " + heapInUse());
                break;
            default:
                throw new IllegalArgumentException(String.join(" ", words));
        }
    }

    private static void nest(InterProcessMutex outer, InterProcessMutex inner) throws Exception {
        outer.acquire();
        Peer.say("holds");
        inner.acquire();
        inner.release();
        outer.release();
        Peer.say("nested");
    }

    private CuratorFramework session(int number) throws Exception {
        while (sessions.size() <= number) {
            sessions.add(Peer.connect(Peer.session(connectString, sessionTimeout).build()));
        }
        return sessions.get(number);
    }

    private List<Turn> turns(String work, String path, int size) throws Exception {
        List<Turn> turns = new ArrayList<>();
        switch (work) {
            case "lock":
                turns.add(turn(new InterProcessMutex(session(0), path)));
                break;
            case "fresh":
                CuratorFramework session = session(0);
                turns.add(held -> turn(new InterProcessMutex(session, path)).take(held));
                break;
            case "read":
                turns.add(turn(new InterProcessReadWriteLock(session(0), path).readLock()));
                break;
            case "write":
                turns.add(turn(new InterProcessReadWriteLock(session(0), path).writeLock()));
                break;
            case "semaphore":
                turns.add(turn(new InterProcessSemaphoreV2(session(0), path, PERMITS)));
                break;
            case "try":
                turns.add(failedTry(path));
                break;
            case "contended":
                for (int number = 0; number < size; number++) {
                    turns.add(turn(new InterProcessMutex(session(number), path)));
                }
                break;
            case "many":
                for (int number = 0; number < size; number++) {
                    turns.add(turn(new InterProcessMutex(session(0), path + "/" + number)));
                }
                break;
            case "tasks":
            case "mutex":
                for (int number = 0; number < size; number++) {
                    // Where they share one instead, each release wakes them all.
                    turns.add(turn(new InterProcessMutex(session(0), path)));
                }
                break;
            default:
                throw new IllegalArgumentException(work);
        }
        return turns;
    }

    private static Turn turn(InterProcessLock lock) {
        return held -> {
            lock.acquire();
            held.run();
            lock.release();
        };
    }

    private static Turn turn(InterProcessSemaphoreV2 semaphore) {
        return held -> {
            Lease lease = semaphore.acquire();
            held.run();
            semaphore.returnLease(lease);
        };
    }

    private Turn failedTry(String path) throws Exception {
        if (!holders.containsKey(path)) {
            InterProcessMutex holder = new InterProcessMutex(session(1), path);
            holder.acquire();
            holders.put(path, holder);
        }
        InterProcessMutex lock = new InterProcessMutex(session(0), path);
        return held -> {
            if (lock.acquire(0, TimeUnit.SECONDS)) {
                throw new IllegalStateException("acquired what another session holds");
            }
            held.run();
        };
    }

    /** Each in a thread of its own, again and again; measured once each of them has had a turn. */
    private static void run(List<Turn> turns, long milliseconds) throws Exception {
        LongAdder taken = new LongAdder();
        CountDownLatch begun = new CountDownLatch(turns.size());
        AtomicBoolean stopped = new AtomicBoolean();
        List<Thread> threads = new ArrayList<>();
        ConcurrentLinkedQueue<String> times = new ConcurrentLinkedQueue<>();
        for (Turn turn : turns) {
            threads.add(Peer.start(() -> {
                turn.take(begun::countDown);
                while (!stopped.get()) {
                    long began = System.nanoTime();
                    turn.take(taken::increment);
                    if (!stopped.get()) {
                        times.add(Long.toString((System.nanoTime() - began) / 1000));
                    }
                }
            }));
        }
        begun.await();
        long switches = switches();
        long before = taken.sum();
        long from = System.nanoTime();
        Thread.sleep(milliseconds);
        long after = taken.sum();
        long to = System.nanoTime();
        switches = switches() - switches;
        stopped.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
        Peer.say("done " + (to - from) + " " + (after - before) + " " + (turns.size() + taken.sum()) + " " + switches
                + " " + String.join(",", times));
    }

    /** The voluntary switches of all threads, where the system counts them. */
    private static long switches() {
        String name = "voluntary_ctxt_switches:";
        long sum = 0;
        File[] threads = new File("/proc/self/task").listFiles();
        for (File thread : threads == null ? new File[0] : threads) {
            try {
                for (String line : Files.readAllLines(thread.toPath().resolve("status"))) {
                    sum += line.startsWith(name) ? Long.parseLong(line.substring(name.length()).trim()) : 0;
                }
            } catch (IOException ended) {
                continue;
            }
        }
        return sum;
    }

    private static long heapInUse() {
        long least = Long.MAX_VALUE;
        for (int time = 0; time < 5; time++) {
            System.gc();
            least = Math.min(least, ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
        }
        return least;
    }

    /** A holder, and others that wait for it to go. */
    private final class Queue {
        private final boolean readers;
        private final String path;
        private final InterProcessMutex holder;
        private final List<Thread> threads = new ArrayList<>();
        private final AtomicLong lastHeld = new AtomicLong(Long.MIN_VALUE);
        private CountDownLatch holding;

        private Queue(String work, String path) throws Exception {
            readers = work.equals("readers");
            this.path = path;
            holder = lock(0, true);
            holder.acquire();
        }

        private InterProcessMutex lock(int session, boolean first) throws Exception {
            if (!readers) {
                return new InterProcessMutex(session(session), path);
            }
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(session(session), path);
            return first ? lock.writeLock() : lock.readLock();
        }

        private void add(int waiters) throws Exception {
            List<InterProcessMutex> locks = new ArrayList<>();
            for (int number = 0; number < waiters; number++) {
                locks.add(lock(1 + (readers ? number : number % SESSIONS_OF_WAITERS), false));
            }
            holding = new CountDownLatch(waiters);
            for (InterProcessMutex lock : locks) {
                threads.add(Peer.start(() -> {
                    lock.acquire();
                    lastHeld.accumulateAndGet(System.nanoTime(), Math::max);
                    holding.countDown();
                    holding.await();
                    lock.release();
                }));
            }
        }

        /** How long it takes until all of them hold, in nanoseconds. */
        private long release() throws Exception {
            long from = System.nanoTime();
            holder.release();
            for (Thread thread : threads) {
                thread.join();
            }
            return lastHeld.get() - from;
        }

        private int waiters() {
            return threads.size();
        }
    }
}
