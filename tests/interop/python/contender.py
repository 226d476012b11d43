"""Contenders that use kazoo. The first page of the Rust crate describes their arguments."""

import os
import socket
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, WriteLock


class CuratorLock(Lock):
    """A lock under Curator's name, which Curator orders like its own."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-", "__lock__"]


class Contender:
    failed = False

    def __init__(self, arguments, mode, number):
        self.connect_string, self.path, self.referee = arguments[:3]
        self.session_timeout = int(arguments[3]) / 1000
        self.turns = int(arguments[4])
        self.stay = int(arguments[5]) / 1000
        self.mode = mode
        self.number = number
        self.name = f"kazoo-{mode}-{number}"

    def run(self):
        try:
            self.contend()
        except Exception:
            Contender.failed = True
            traceback.print_exc()

    def contend(self):
        host, port = self.referee.split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.lines = connection.makefile("rw", encoding="utf-8", newline="\n")
            client = KazooClient(self.connect_string, timeout=self.session_timeout)
            client.start(timeout=30)
            try:
                self.tell(f"ready {self.name}")
                self.take_turns(self.lock(client))
            finally:
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

    def take_turns(self, lock):
        kind = "shared" if self.mode == "read" else "exclusive"
        for turn in range(self.turns):
            lock.acquire()
            self.tell(f"enter {self.name} {kind} {lock.node}")
            if turn % 5 == 0:
                self.tell(" ".join(["sees", self.name, *lock.contenders()]))
            time.sleep(self.stay)
            self.tell(f"leave {self.name}")
            lock.release()
            time.sleep((7 * self.number + 13 * turn) % 40 / 1000)

    def tell(self, line):
        self.lines.write(line + "\n")
        self.lines.flush()
        if not self.lines.readline():
            raise ConnectionError("the referee has gone")


def end_with_standard_input():
    while os.read(0, 1024):
        pass
    os._exit(1)


def main(arguments):
    threading.Thread(target=end_with_standard_input, daemon=True).start()
    threads = []
    for mode, count in (argument.split(":") for argument in arguments[6:]):
        for number in range(int(count)):
            contender = Contender(arguments, mode, number)
            threads.append(threading.Thread(target=contender.run))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stderr.flush()
    os._exit(1 if Contender.failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
