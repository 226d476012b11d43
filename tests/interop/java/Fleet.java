import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;

/** The role `fleet`: many sessions, each with holds, and contenders that hand locks on. */
final class Fleet {
    private static final int AT_A_TIME = 20;
    private static final long AFTER = TimeUnit.SECONDS.toNanos(10);

    private final String connectString;
    private final int sessionTimeout;
    private final int locks;
    private final List<CuratorFramework> sessions = new ArrayList<>();
    private final List<Queue> queues = new ArrayList<>();
    private final List<Thread> contenders = new ArrayList<>();
    private final List<Thread> working = new ArrayList<>();
    private final List<Double> worksAfter = new ArrayList<>();
    private final AtomicInteger lost = new AtomicInteger();
    private final LongAdder failures = new LongAdder();
    private volatile boolean stopped;
    private long died;

    Fleet(String connectString, int sessionTimeout, String[] arguments) throws Exception {
        this.connectString = connectString;
        this.sessionTimeout = sessionTimeout;
        int number = Integer.parseInt(arguments[0]);
        locks = Integer.parseInt(arguments[1]);
        int contendersOfOne = Integer.parseInt(arguments[2]);
        ExecutorService opening = Executors.newFixedThreadPool(AT_A_TIME);
        List<Callable<CuratorFramework>> calls = new ArrayList<>();
        for (int session = 0; session < number; session++) {
            int place = session;
            calls.add(() -> open(place));
        }
        for (Future<CuratorFramework> session : opening.invokeAll(calls)) {
            sessions.add(session.get());
        }
        opening.shutdown();
        for (int queue = 0; queue < Math.max(1, number / contendersOfOne); queue++) {
            queues.add(new Queue());
        }
    }

    void work() throws Exception {
        begin();
        Peer.obey(order -> obey(order[0]));
    }

    private void obey(String order) throws Exception {
        switch (order) {
            case "take":
                Peer.say("taken " + queues.stream().map(Queue::take).collect(Collectors.joining(",")));
                break;
            case "held":
                Peer.say("held " + held());
                break;
            case "died":
                died();
                Peer.say("noted");
                break;
            case "outcome":
                for (Thread thread : working) {
                    thread.join();
                }
                Peer.say("outcome " + figures(worksAfter) + ";" + figures(gaps()) + ";" + failures.sum());
                break;
            case "end":
                end();
                Peer.say("ended");
                break;
            default:
                throw new IllegalArgumentException(order);
        }
    }

    private CuratorFramework open(int number) throws Exception {
        CuratorFramework session = Peer.session(connectString, sessionTimeout).build();
        session.getConnectionStateListenable().addListener((client, state) -> {
            if (state == ConnectionState.LOST) {
                lost.incrementAndGet();
            }
        });
        Peer.connect(session);
        for (int lock = 0; lock < locks; lock++) {
            new InterProcessMutex(session, "/held/" + number + "/" + lock).acquire();
        }
        return session;
    }

    /** The locks whose session Curator has not reported as lost. */
    private int held() {
        return (sessions.size() - lost.get()) * locks;
    }

    private void begin() {
        for (int place = 0; place < sessions.size(); place++) {
            int which = place % queues.size();
            InterProcessMutex lock = new InterProcessMutex(sessions.get(place), "/handed-on/" + which);
            Queue queue = queues.get(which);
            contenders.add(Peer.start(() -> {
                while (!stopped) {
                    turn(lock, queue);
                }
            }));
        }
    }

    private void turn(InterProcessMutex lock, Queue queue) {
        try {
            lock.acquire();
            queue.acquired();
            lock.release();
        } catch (Exception failure) {
            failures.increment();
        }
    }

    private void died() {
        died = System.nanoTime();
        queues.forEach(Queue::take);
        for (int number = 0; number < sessions.size(); number++) {
            InterProcessMutex lock = new InterProcessMutex(sessions.get(number), "/after/" + number);
            working.add(Peer.start(() -> worksAgain(lock)));
        }
    }

    private void worksAgain(InterProcessMutex lock) {
        while (true) {
            try {
                lock.acquire();
                lock.release();
                break;
            } catch (Exception failure) {
                failures.increment();
            }
        }
        double took = (System.nanoTime() - died) / 1e9;
        synchronized (worksAfter) {
            worksAfter.add(took);
        }
    }

    /** The longest time without a handoff of each lock that is handed on, in seconds. */
    private List<Double> gaps() {
        return queues.stream().map(queue -> queue.gap(died, died + AFTER) / 1e9).collect(Collectors.toList());
    }

    private static String figures(List<Double> values) {
        return values.stream().map(value -> String.format(Locale.ROOT, "%.6f", value)).collect(Collectors.joining(","));
    }

    private void end() throws Exception {
        stopped = true;
        for (Thread thread : contenders) {
            thread.join();
        }
        ExecutorService closing = Executors.newFixedThreadPool(AT_A_TIME);
        sessions.forEach(session -> closing.execute(session::close));
        closing.shutdown();
        closing.awaitTermination(60, TimeUnit.SECONDS);
    }

    /** A lock that its contenders hand on. */
    private static final class Queue {
        private final List<Long> at = new ArrayList<>();
        private final List<Long> took = new ArrayList<>();
        private long released;

        /** The next holder holds, and releases at once. */
        private synchronized void acquired() {
            long now = System.nanoTime();
            if (released != 0) {
                at.add(now);
                took.add(now - released);
            }
            released = System.nanoTime();
        }

        /** The microseconds of each handoff since the last call. */
        private synchronized String take() {
            String taken = took.stream().map(time -> Long.toString(time / 1000)).collect(Collectors.joining(","));
            at.clear();
            took.clear();
            return taken;
        }

        private synchronized long gap(long from, long to) {
            long gap = 0;
            long last = from;
            for (long handoff : at) {
                long now = Math.min(handoff, to);
                gap = Math.max(gap, now - last);
                last = now;
            }
            return Math.max(gap, to - last);
        }
    }
}
