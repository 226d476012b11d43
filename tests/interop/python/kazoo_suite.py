"""Runs kazoo's own tests against servers that run already.

    kazoo_suite.py <directory of kazoo's sources> <connect string> <address of the admin port>
        <part>/<parts> [<arguments of pytest>...]

The parts are numbered from 0, and each has its share of the tests. The tests mostly wait, so that parts
can run side by side, each on servers of its own.

kazoo's harness starts Apache's servers, with Java, and makes certificates for them. Here it gets the
servers that the caller has started. It stops and starts them through their admin port.

Tests that cannot apply to these servers are left out, each with its reason. A reason that no test
has is an error.

Some of the tests race with themselves: test_handle_session_loss expires a session that is to queue,
and does not wait until it does. test_lock waits until nobody holds, and misses that moment if the
next thread holds at once. Others wait without an end for threads that have failed. So a test fails
after some time, and tests that fail run once more, which is printed.
"""

import faulthandler
import os
import signal
import sys
import types
import urllib.request

import pytest

SOURCES, CONNECT_STRING, ADMIN, SHARE, *ARGUMENTS = sys.argv[1:]

RECONFIGURED = "the members of the ensemble are fixed"

LEFT_OUT = {
    "test_client.py::TestSSLClient::test_create": "there is no TLS",
    "test_client.py::TestReconfig::test_add_remove_observer": RECONFIGURED,
    "test_client.py::TestReconfig::test_bad_input": RECONFIGURED,
    "test_client.py::TestReconfig::test_no_super_auth": RECONFIGURED,
    "test_build.py::": "looks at the machine that kazoo is released from",
    "test_eventlet_handler.py::": "needs a package that kazoo does not need",
    "test_gevent_handler.py::": "needs a package that kazoo does not need",
    "test_sasl.py::": "there is no SASL",
}


# In seconds. Much longer than any test of kazoo takes, also on a busy machine.
LONGEST_TEST = 60

# The tests that have failed.
FAILED = []


class Member:
    """A server, as the harness sees it."""

    # The harness starts the servers unless they run.
    running = True

    def __init__(self, number, address):
        self.number = number
        self.address = address

    def stop(self):
        self._ask("stop")

    def run(self):
        self._ask("start")

    def _ask(self, what):
        url = f"http://{ADMIN}/members/{self.number}/{what}"
        request = urllib.request.Request(url, method="POST")
        urllib.request.urlopen(request, timeout=10).close()


class Cluster(list):
    """The servers, as the harness sees them. They run already."""

    def start(self):
        pass

    def terminate(self):
        pass

    def get_logs(self):
        return []


def set_up_harness():
    # The real module needs packages to make certificates with.
    common = types.ModuleType("kazoo.testing.common")
    common.ZookeeperCluster = Cluster
    sys.modules["kazoo.testing.common"] = common
    from kazoo.testing import harness

    addresses = CONNECT_STRING.split(",")
    cluster = Cluster(Member(number, address) for number, address in enumerate(addresses))
    harness.get_global_cluster = lambda: cluster


def give_up(*_):
    # Shows where each thread waits, to find the cause.
    faulthandler.dump_traceback(file=sys.__stderr__)
    raise TimeoutError(f"the test waits for more than {LONGEST_TEST} seconds")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    signal.signal(signal.SIGALRM, give_up)
    # More than once, because the end of a test that was given up may wait without an end, too.
    signal.setitimer(signal.ITIMER_REAL, LONGEST_TEST, LONGEST_TEST)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


def pytest_runtest_logreport(report):
    if report.failed:
        FAILED.append(report.nodeid)


def pytest_collection_modifyitems(config, items):
    if FAILED:
        return
    found = {part: False for part in LEFT_OUT}
    kept, left_out = [], []
    for item in items:
        parts = [part for part in LEFT_OUT if part in item.nodeid]
        for part in parts:
            found[part] = True
        (left_out if parts else kept).append(item)
    missing = [part for part, is_found in found.items() if not is_found]
    if missing:
        raise pytest.UsageError(f"no such tests: {', '.join(missing)}")
    config.hook.pytest_deselected(items=left_out)
    part, parts = map(int, SHARE.split("/"))
    items[:] = kept[part::parts]


if __name__ == "__main__":
    os.chdir(SOURCES)
    sys.path.insert(0, SOURCES)
    # The tests read it to leave out what an older server does not know.
    os.environ["ZOOKEEPER_VERSION"] = "3.8.0"
    set_up_harness()
    plugins = [sys.modules[__name__]]
    options = ["-q", "--color=no", "-p", "no:cacheprovider", *ARGUMENTS]
    code = pytest.main([*options, "kazoo/tests"], plugins=plugins)
    if code == pytest.ExitCode.TESTS_FAILED:
        again = sorted(set(FAILED))
        print("Once more:", *again, sep="\n")
        code = pytest.main([*options, *again], plugins=plugins)
    sys.stdout.flush()
    # A test that was given up may have left threads that never end.
    os._exit(code)
