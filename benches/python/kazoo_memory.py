"""The memory of kazoo's locks. The bench `memory` of the Rust crate describes its lines."""

import gc
import os
import sys
import threading
import time
import tracemalloc

from kazoo.client import KazooClient

FIRST = 100


def session(connect_string):
    client = KazooClient(connect_string, timeout=30)
    client.start(timeout=60)
    return client


def in_use():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def measure(what, number, make, until=lambda waiters: None):
    kept = [None] * (FIRST + number)
    for each in range(FIRST + number):
        if each == FIRST:
            until(FIRST)
            before = in_use()
        kept[each] = make(each)
    until(FIRST + number)
    print(what, (in_use() - before) / number, flush=True)


def main(connect_string, path, number):
    number = int(number)
    client = session(connect_string)
    queue = f"{path}/queue"
    client.ensure_path(queue)
    holder = session(connect_string).Lock(queue)
    holder.acquire()
    tracemalloc.start()

    def lock(each):
        return client.Lock(f"{path}/{each}")

    def used(each):
        it = lock(each)
        it.acquire()
        it.release()
        return it

    def hold(each):
        it = lock(FIRST + number + each)
        it.acquire()
        return it

    def waiter(_):
        thread = threading.Thread(target=client.Lock(queue).acquire, daemon=True)
        thread.start()
        return thread

    def until(waiters):
        while len(client.get_children(queue)) <= waiters:
            time.sleep(0.01)
        # The last of them sets its watch.
        time.sleep(2)

    measure("idle", number, lock)
    measure("used", number, used)
    measure("hold", number, hold)
    measure("waiter", number, waiter, until)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
