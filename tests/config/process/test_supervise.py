"""The supervisor with test children, in a process of its own because it handles signals."""

import subprocess
import sys

import pytest

from config.instance import BASE_DIR
from tests.support.installation import clean_environment

pytestmark = pytest.mark.slow


def supervise(code: str) -> "subprocess.CompletedProcess[str]":
    """Run these lines after `from config.process.supervise import *`."""
    return subprocess.run(
        [sys.executable, "-c", f"from config.process.supervise import *\n{code}"],
        cwd=BASE_DIR,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


def test_web_server_that_never_becomes_ready_stops_the_supervisor() -> None:
    completed = supervise("""
supervisor = Supervisor(None)
supervisor.add(Child("web server", ["/bin/sh", "-c", "exit 3"]))
print(supervisor.wait_until_ready("127.0.0.1", 1), supervisor.run())
supervisor.stop()
""")
    assert completed.stdout == "False 1\n"
    assert completed.stderr == "tooltrail: the web server exited with exit code 3; stopping\n"


def test_stop_signal_right_after_the_server_is_ready_drains() -> None:
    """The announcement and the start of the worker follow, and SIGTERM may come meanwhile."""
    completed = supervise("""
import config.process.supervise as here
here.DRAIN_S, here.DRAINING = 1, __import__("unittest.mock").mock.Mock()
here.answers = lambda host, port: True
supervisor = Supervisor(None)
supervisor.add(Child("web server", ["sleep", "600"]))
ready = supervisor.wait_until_ready("127.0.0.1", 1)
signal.raise_signal(signal.SIGTERM)
began = time.monotonic()
print(ready, supervisor.run(), time.monotonic() - began > 0.9, here.DRAINING.touch.called)
supervisor.stop()
""")
    assert completed.stdout == "True 0 True True\n"


def test_child_ignoring_sigterm_is_killed_with_its_descendants() -> None:
    completed = supervise("""
supervisor = Supervisor(None)
stubborn = "trap '' TERM; sleep 600 & echo $! >&2; while :; do wait; done"
for name in ("web server", "worker"):
    supervisor.add(Child(name, ["/bin/sh", "-c", stubborn]))
while len(psutil.Process().children(recursive=True)) < 5:  # the guardian is the fifth
    time.sleep(0.01)
everything = psutil.Process().children(recursive=True)
supervisor.stop()
deadline = time.monotonic() + 5  # a signal is sent before it has done its work
is_left = lambda one: one.is_running() and one.status() != "zombie"
while any(map(is_left, everything)) and time.monotonic() < deadline:
    time.sleep(0.01)
print(list(filter(is_left, everything)))
""")
    assert completed.stdout == "[]\n"


def test_failing_child_is_restarted_with_growing_delay() -> None:
    completed = supervise("""
import config.process.child as here
child = Child("worker", ["true"])
for lived_s in (60, 60, 60, 0, 0):
    here._LIVED_S = lived_s
    child.start()
    child.wait()
    child.restart_if_due()
    print(child._restart_delay_s)
""")
    assert completed.stdout.split() == ["2.0", "4.0", "8.0", "1.0", "1.0"]
    assert completed.stderr.splitlines()[0] == (
        "tooltrail: the worker exited with exit code 0; restarting it"
    )


def test_child_killed_again_and_again_is_restarted_immediately() -> None:
    """The gRPC server, killed a few times, was away for 16 s: exporters gave their spans up."""
    completed = supervise("""
child = Child("gRPC server", ["sleep", "600"])
child.start()
for _ in range(5):
    child.signal(signal.SIGKILL)
    child.wait()
    print(child.restart_if_due())
child.signal(signal.SIGKILL)
""")
    assert completed.stdout.split() == ["True"] * 5


def test_processes_of_a_killed_server_go_on_until_the_next_one_ends_them() -> None:
    completed = supervise("""
supervisor = Supervisor(None)
command = ["/bin/sh", "-c", "sleep 600 & echo ready >&2; wait; :", "server"]
child = Child("web server", command, takes_over=True)
supervisor.add(child)
mine = psutil.Process(child.groups[0])
while not mine.children():
    time.sleep(0.01)
served = mine.children()[0]
mine.kill()
child.wait()
child._restart_delay_s = 0.0
print(child.restart_if_due(), served.is_running())
left, now = child.groups
print(left == mine.pid, child._process.args[-2:] == ["--replaces", str(left)])
supervisor.stop()
deadline = time.monotonic() + 5
while served.is_running() and served.status() != "zombie" and time.monotonic() < deadline:
    time.sleep(0.01)
print(served.is_running() and served.status() != "zombie")
""")
    assert completed.stdout == "True True\nTrue True\nFalse\n"


def test_processes_of_a_server_that_ended_by_itself_end_with_it() -> None:
    completed = supervise("""
child = Child("web server", ["/bin/sh", "-c", "sleep 600 & exit 1"], takes_over=True)
child.start()
child.wait()
child.restart_if_due()
print(child.groups)
""")
    assert completed.stdout == "[]\n"
