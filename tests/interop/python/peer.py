"""kazoo in a role. The first page of the Rust crate describes the arguments and the lines."""

import gc
import logging
import os
import platform
import resource
import socket
import sys
import threading
import time
import traceback
from importlib.metadata import version

from kazoo.client import KazooClient, KazooState
from kazoo.recipe.lock import Lock, ReadLock, WriteLock

PERMITS = 5
SESSIONS_OF_WAITERS = 4

# How long a client of the role `set` waits for its lock, in seconds.
PATIENCE = 15


def say(line):
    print(line, flush=True)


def ask(line):
    say(line)
    answer = sys.stdin.readline()
    if not answer:
        os._exit(1)
    return answer.split()


def ready():
    return f"ready kazoo {version('kazoo')} on Python {platform.python_version()}"


def end_the_process(failure):
    """Any failure ends the process."""
    traceback.print_exception(*failure[:3])
    sys.stderr.flush()
    os._exit(1)


def end_with_input(code):
    def wait():
        while os.read(0, 1024):
            pass
        os._exit(code)

    threading.Thread(target=wait, daemon=True).start()


class CuratorLock(Lock):
    """A lock under Curator's name, which Curator orders like its own."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-", "__lock__"]


def contend(open_session, path, referee, turns, stay, *modes):
    """The role `contend`: contenders that report to a referee."""
    end_with_input(1)
    threads = []
    for mode, count in (mode.split(":") for mode in modes):
        for number in range(int(count)):
            contender = Contender(open_session, path, mode, number)
            arguments = referee, int(turns), int(stay) / 1000
            threads.append(threading.Thread(target=contender.run, args=arguments))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Contender:
    def __init__(self, open_session, path, mode, number):
        self.open_session = open_session
        self.path = path
        self.mode = mode
        self.number = number
        self.name = f"kazoo-{mode}-{number}"

    def run(self, referee, turns, stay):
        host, port = referee.split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.lines = connection.makefile("rw", encoding="utf-8", newline="\n")
            client = self.open_session()
            self.tell(f"ready {self.name}")
            lock = self.lock(client)
            for turn in range(turns):
                self.turn(lock, stay, turn)
            client.stop()
            client.close()

    def lock(self, client):
        if self.mode == "lock":
            return Lock(client, self.path, self.name, extra_lock_patterns=["-lock-"])
        if self.mode == "stock":
            return Lock(client, self.path, self.name)
        if self.mode == "renamed":
            return CuratorLock(client, self.path, self.name)
        if self.mode == "read":
            return ReadLock(client, self.path, self.name, extra_lock_patterns=["__WRIT__"])
        if self.mode == "write":
            patterns = ["__WRIT__", "__READ__"]
            return WriteLock(client, self.path, self.name, extra_lock_patterns=patterns)
        raise ValueError(self.mode)

    def turn(self, lock, stay, turn):
        kind = "shared" if self.mode == "read" else "exclusive"
        lock.acquire()
        self.tell(f"enter {self.name} {kind} {lock.node}")
        if turn % 5 == 0:
            self.tell(" ".join(["sees", self.name, *lock.contenders()]))
        time.sleep(stay)
        self.tell(f"leave {self.name}")
        lock.release()
        time.sleep((7 * self.number + 13 * turn) % 40 / 1000)

    def tell(self, line):
        self.lines.write(line + "\n")
        self.lines.flush()
        if not self.lines.readline():
            raise ConnectionError("the referee has gone")


class Worker:
    """The role `work`: contenders that take turns, and a queue behind a holder."""

    def __init__(self, open_session):
        self.open_session = open_session
        self.sessions = []
        self.holders = {}
        self.queue = None

    def work(self):
        say(ready())
        for order in sys.stdin:
            self.obey(*order.split())
        # A contender that still waits waits in vain.
        threading.excepthook = lambda failure: None
        logging.disable()
        for session in self.sessions:
            session.stop()

    def obey(self, command, *words):
        if command == "run":
            work, path, size, milliseconds = words
            run(self.turns(work, path, int(size)), int(milliseconds) / 1000)
        elif command == "queue":
            work, path, waiters = words
            if self.queue is None:
                self.queue = Queue(self, work, path)
            self.queue.add(int(waiters))
            say("queued")
        elif command == "release":
            waiters = len(self.queue.threads)
            say(f"done {self.queue.release()} {waiters} {waiters}")
            self.queue = None
        elif command == "nest":
            threading.Thread(target=self.nest, args=words).start()
        elif command == "memory":
            gc.collect()
            say("memory 0")
        else:
            raise ValueError(command)

    def nest(self, *paths):
        outer, inner = (CuratorLock(self.session(0), path) for path in paths)
        outer.acquire()
        say("holds")
        inner.acquire()
        inner.release()
        outer.release()
        say("nested")

    def session(self, number):
        while len(self.sessions) <= number:
            self.sessions.append(self.open_session())
        return self.sessions[number]

    def turns(self, work, path, size):
        if work == "lock":
            return [turn(self.session(0).Lock(path))]
        if work == "fresh":
            return [lambda: turn(self.session(0).Lock(path))()]
        if work == "read":
            return [turn(self.session(0).ReadLock(path))]
        if work == "write":
            return [turn(self.session(0).WriteLock(path))]
        if work == "semaphore":
            return [turn(self.session(0).Semaphore(path, max_leases=PERMITS))]
        if work == "try":
            return [self.failed_try(path)]
        if work == "contended":
            return [turn(self.session(number).Lock(path)) for number in range(size)]
        if work == "many":
            return [turn(self.session(0).Lock(f"{path}/{number}")) for number in range(size)]
        if work in ("tasks", "mutex"):
            # Where they share one instead, they poll it.
            return [turn(self.session(0).Lock(path)) for _ in range(size)]
        raise ValueError(work)

    def failed_try(self, path):
        if path not in self.holders:
            self.holders[path] = self.session(1).Lock(path)
            self.holders[path].acquire()
        lock = self.session(0).Lock(path)

        def take():
            if lock.acquire(blocking=False):
                raise RuntimeError("acquired what another session holds")
            yield

        return take


def turn(lock):
    def take():
        lock.acquire()
        yield
        lock.release()

    return take


def run(turns, seconds):
    """Each in a thread of its own, again and again; measured once each of them has had a turn."""
    taken = [0] * len(turns)
    times = []
    begun = threading.Semaphore(0)
    stopped = threading.Event()

    def take(number, turn):
        for _ in turn():
            begun.release()
        while not stopped.is_set():
            began = time.perf_counter_ns()
            for _ in turn():
                taken[number] += 1
            if not stopped.is_set():
                times.append(str((time.perf_counter_ns() - began) // 1000))

    threads = [threading.Thread(target=take, args=item) for item in enumerate(turns)]
    for thread in threads:
        thread.start()
    for _ in turns:
        begun.acquire()
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    before = sum(taken)
    since = time.perf_counter_ns()
    time.sleep(seconds)
    after = sum(taken)
    until = time.perf_counter_ns()
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - switches
    stopped.set()
    for thread in threads:
        thread.join()
    counts = f"{after - before} {len(turns) + sum(taken)} {switches}"
    say(f"done {until - since} {counts} {','.join(times)}")


class Queue:
    """A holder, and others that wait for it to go."""

    def __init__(self, peer, work, path):
        self.peer = peer
        self.readers = work == "readers"
        self.path = path
        self.threads = []
        self.held_at = []
        self.holder = self.lock(0)
        self.holder.acquire()

    def lock(self, session):
        client = self.peer.session(session)
        if not self.readers:
            return client.Lock(self.path)
        return client.WriteLock(self.path) if session == 0 else client.ReadLock(self.path)

    def add(self, waiters):
        sessions = waiters if self.readers else SESSIONS_OF_WAITERS
        locks = [self.lock(1 + number % sessions) for number in range(waiters)]
        holding = threading.Barrier(waiters)

        def wait(lock):
            lock.acquire()
            self.held_at.append(time.perf_counter_ns())
            holding.wait()
            lock.release()

        for lock in locks:
            thread = threading.Thread(target=wait, args=(lock,))
            self.threads.append(thread)
            thread.start()

    def release(self):
        """How long it takes until all of them hold, in nanoseconds."""
        since = time.perf_counter_ns()
        self.holder.release()
        for thread in self.threads:
            thread.join()
        return max(self.held_at) - since


def partition(open_session, partitions, number):
    """The role `partition`: a worker of a SetPartitioner."""
    client = open_session()
    say(ready())
    sys.stdin.readline()
    end_with_input(0)
    partitioner = client.SetPartitioner(
        f"/kazoo/{partitions}",
        set=tuple(str(each) for each in range(int(partitions))),
        identifier=f"worker-{number}",
        # The shortest: it waits until the group has not changed for this time.
        time_boundary=1,
    )
    owned = None
    while not partitioner.failed:
        if partitioner.release:
            owned = None
            say("owns")
            partitioner.release_set()
        elif partitioner.acquired:
            if owned is None:
                owned = list(partitioner)
                say(" ".join(["owns", *owned]))
            time.sleep(0.002)
        elif partitioner.allocating:
            partitioner.wait_for_acquire()
    raise RuntimeError("the partitioner has failed")


class SetClient:
    """The role `set`: a client of a set that a lock guards."""

    def __init__(self, connect_string, session_timeout, path):
        self.path = path
        # How often the connection was not known to be there. kazoo's documentation asks holders to
        # stop at SUSPENDED.
        self.doubts = 0
        self.client = KazooClient(
            connect_string,
            timeout=session_timeout,
            command_retry={"max_tries": 3, "max_delay": 1},
            connection_retry={"max_tries": -1, "max_delay": 1},
        )
        self.client.add_listener(self.listen)
        self.client.start(timeout=30)

    def listen(self, state):
        if state != KazooState.CONNECTED:
            self.doubts += 1

    def work(self):
        answer = ask(ready())
        while answer[0] == "again":
            time.sleep(int(answer[1]) / 1000)
            answer = self.turn(Lock(self.client, self.path))

    def turn(self, lock):
        try:
            if not lock.acquire(timeout=PATIENCE):
                return ask("failed no lock in time")
            acquired = clock()
            before = self.doubts
            # kazoo has no token. This is the number that its znode has on the server.
            stat = self.client.exists(f"{self.path}/{lock.node}")
            if stat is None:
                release(lock)
                return ask("failed the znode is gone")
            answer = ask(f"read {stat.czxid} {acquired}")
            time.sleep(int(answer[1]) / 1000)
            began = clock()
            holds = lock.is_acquired and self.doubts == before
            say(f"look {str(holds).lower()} {began}")
            time.sleep(int(answer[2]) / 1000)
            answer = ask("write")
        except Exception as failure:
            release(lock)
            return ask("failed " + repr(failure).replace("\n", " "))
        release(lock)
        return answer


def release(lock):
    try:
        lock.release()
    except Exception:
        # The session has ended, and the znode with it.
        pass


def clock():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def main(connect_string, session_timeout, role, *rest):
    threading.excepthook = end_the_process
    seconds = int(session_timeout) / 1000

    def open_session():
        client = KazooClient(connect_string, timeout=seconds)
        client.start(timeout=60)
        return client

    if role == "contend":
        contend(open_session, *rest)
    elif role == "work":
        Worker(open_session).work()
    elif role == "partition":
        partition(open_session, *rest)
    elif role == "set":
        SetClient(connect_string, seconds, *rest).work()
    else:
        raise ValueError(role)
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception:
        end_the_process(sys.exc_info())
