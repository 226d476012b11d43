"""A worker of kazoo's SetPartitioner. The bench `assignment` of the Rust crate describes its lines.

It gets the connect string, the number of partitions, its own number and the session timeout in
milliseconds. It prints "ready" once its session is open, joins after a line on standard input, and
then prints "owns" with the partitions each time that they change. It ends with standard input.
"""

import os
import sys
import threading
import time

from kazoo.client import KazooClient


def end_with_input():
    sys.stdin.read()
    os._exit(0)


def main(connect_string, partitions, number, session_timeout):
    client = KazooClient(connect_string, timeout=int(session_timeout) / 1000)
    client.start(timeout=60)
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=end_with_input, daemon=True).start()
    partitioner = client.SetPartitioner(
        f"/kazoo/{partitions}",
        set=tuple(str(each) for each in range(int(partitions))),
        identifier=f"worker-{number}",
        # The shortest: it waits until the group has not changed for this time.
        time_boundary=1,
    )
    owned = None
    while True:
        if partitioner.failed:
            print("failed", flush=True)
            os._exit(1)
        elif partitioner.release:
            owned = None
            print("owns", flush=True)
            partitioner.release_set()
        elif partitioner.acquired:
            if owned is None:
                owned = list(partitioner)
                print("owns", *owned, flush=True)
            time.sleep(0.002)
        elif partitioner.allocating:
            partitioner.wait_for_acquire()


if __name__ == "__main__":
    main(*sys.argv[1:])
