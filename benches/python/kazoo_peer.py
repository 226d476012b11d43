"""kazoo at work. The module `peers` of the Rust crate describes its orders."""

import gc
import logging
import os
import platform
import resource
import sys
import threading
import time
import traceback
from importlib.metadata import version

from kazoo.client import KazooClient

PERMITS = 5
SESSIONS_OF_WAITERS = 4


def say(line):
    print(line, flush=True)


def end_the_process(failure):
    """Any failure ends the process, and with it the measurement."""
    traceback.print_exception(*failure[:3])
    sys.stderr.flush()
    os._exit(1)


class Peer:
    def __init__(self, connect_string, session_timeout):
        self.connect_string = connect_string
        self.session_timeout = session_timeout / 1000
        self.sessions = []
        self.holders = {}
        self.queue = None

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
        elif command == "memory":
            gc.collect()
            say("memory 0")
        else:
            raise ValueError(command)

    def session(self, number):
        while len(self.sessions) <= number:
            session = KazooClient(self.connect_string, timeout=self.session_timeout)
            session.start(timeout=60)
            self.sessions.append(session)
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
        if work == "tasks":
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


def main(connect_string, session_timeout):
    threading.excepthook = end_the_process
    peer = Peer(connect_string, int(session_timeout))
    say(f"ready kazoo {version('kazoo')} on Python {platform.python_version()}")
    for order in sys.stdin:
        peer.obey(*order.split())
    # A contender that still waits waits in vain.
    threading.excepthook = lambda failure: None
    logging.disable()
    for session in peer.sessions:
        session.stop()
    os._exit(0)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception:
        end_the_process(sys.exc_info())
