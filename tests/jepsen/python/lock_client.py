"""A client of the set that uses kazoo. The module `client` of the Rust crate describes it."""

import os
import sys
import time

import kazoo
from kazoo.client import KazooClient, KazooState
from kazoo.recipe.lock import Lock

PATIENCE = 15


class Client:
    def __init__(self, connect_string, path, session_timeout):
        self.path = path
        # How often the connection was not known to be there. kazoo's documentation asks holders to
        # stop at SUSPENDED.
        self.doubts = 0
        retry = {"max_tries": 3, "max_delay": 1}
        self.client = KazooClient(
            connect_string,
            timeout=session_timeout,
            command_retry=retry,
            connection_retry={"max_tries": -1, "max_delay": 1},
        )
        self.client.add_listener(self.listen)
        self.client.start(timeout=30)

    def listen(self, state):
        if state != KazooState.CONNECTED:
            self.doubts += 1

    def run(self):
        answer = ask(f"ready kazoo {kazoo.__version__}")
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


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def ask(line):
    say(line)
    answer = sys.stdin.readline()
    if not answer:
        os._exit(1)
    return answer.split()


if __name__ == "__main__":
    Client(sys.argv[1], sys.argv[2], int(sys.argv[3]) / 1000).run()
    os._exit(0)
