"""Killed, forked and short-lived processes: no event is lost or duplicated, no key mixed up."""

import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import Server
from sdk.tests.support.spools import adopt_segments

pytestmark = pytest.mark.slow

PROLOGUE = """
import os, sys, time, logging
from tooltrail import Trail
trail = Trail()
@trail.tool(version="1")
def echo(n):
    return n
"""


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a Python process with a trail and a tool `echo`."""

    def start(code: str, **env: str) -> subprocess.Popen[str]:
        variables = {
            **os.environ,
            "TOOLTRAIL_URL": server.url,
            "TOOLTRAIL_API_KEY": KEY,
            "TOOLTRAIL_SPOOL_DIR": str(tmp_path),
            **env,
        }
        return subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + textwrap.dedent(code)],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def finish(process: subprocess.Popen[str]) -> str:
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        _, err = process.communicate()
        pytest.fail(f"it hung, and had said: {err}")
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return out


def by_producer(server: Server) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for event in server.events:
        numbers.setdefault(event["producer_id"], []).append(event["producer_seq"])
    return numbers


def is_contiguous(seqs: list[int]) -> bool:
    return sorted(seqs) == list(range(len(seqs)))


def test_script_delivers_events_before_exit(server: Server, start: Any, tmp_path: Path) -> None:
    finish(start("for n in range(10): echo(n)"))
    assert len(server.events) == 20
    assert not list(tmp_path.glob("*/*/*")), "nothing is left behind"


def test_killed_process_loses_no_started_call(server: Server, start: Any, make_trail: Any) -> None:
    server.plan = lambda request: (503, {}, {})
    process = start(
        """
        n = 0
        while True:
            echo(n)
            print(n, flush=True)
            n += 1
        """
    )
    for line in process.stdout:
        if int(line) == 700:
            break
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()  # communicate() would not see what the loop has read ahead
    process.communicate(timeout=60)
    last = max([700, *map(int, rest.split())])
    server.plan = lambda request: None
    adopt_segments(server, make_trail)
    ends = {
        event["output"]["data"]
        for event in server.events
        if event["type"] == "toolExecutionEnd" and event["tool_name"] == "echo"
    }
    assert set(range(last + 1)) <= ends, "each call that returned is there"
    assert len(ends) <= last + 2
    assert all(map(is_contiguous, by_producer(server).values()))


@pytest.mark.parametrize("goodbye", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_abrupt_exits_lose_no_event(
    server: Server, start: Any, make_trail: Any, goodbye: str
) -> None:
    process = start(f"echo(1)\n{goodbye}")
    process.communicate(timeout=60)
    adopt_segments(server, make_trail)
    assert Counter(event["tool_name"] for event in server.events) == {"echo": 2, "hello": 2}


def test_unresponsive_server_does_not_delay_process_exit(server: Server, start: Any) -> None:
    with server.arrived:  # nobody gets an answer while this is held
        finish(start("echo(1)", TOOLTRAIL_EXIT_TIMEOUT="0.2"))


@pytest.mark.sampled("processes of an executor", 2)
def test_forked_children_are_separate_producers(
    server: Server, start: Any, make_trail: Any
) -> None:
    finish(
        start(
            """
            import warnings; warnings.simplefilter("ignore")
            import multiprocessing
            echo(0)
            children = []
            for child in range(3):
                pid = os.fork()
                if pid == 0:
                    for n in range(100): echo(n)
                    os._exit(0)
                children.append(pid)
            context = multiprocessing.get_context("fork")
            process = context.Process(target=echo, args=(1,))
            process.start(); process.join()
            for pid in children: os.waitpid(pid, 0)
            for n in range(99): echo(n)
            """
        )
    )
    adopt_segments(server, make_trail)
    producers = by_producer(server)
    assert sorted(map(len, producers.values())) == [2, 2, 200, 200, 200, 200]
    assert all(map(is_contiguous, producers.values()))


@pytest.mark.sampled("processes of an executor", 2)
def test_fork_during_writing_does_not_deadlock(server: Server, start: Any, make_trail: Any) -> None:
    finish(
        start(
            """
            import threading, warnings; warnings.simplefilter("ignore")
            stop = False
            def busy():
                while not stop: echo(0)
            thread = threading.Thread(target=busy); thread.start()
            for child in range(5):
                pid = os.fork()
                if pid == 0:
                    echo(1)
                    os._exit(0)
                os.waitpid(pid, 0)
            stop = True
            thread.join()
            trail.flush(20)
            """
        )
    )
    adopt_segments(server, make_trail)
    assert all(map(is_contiguous, by_producer(server).values()))
    assert len(by_producer(server)) == 7


@pytest.mark.sampled("processes of an executor", 2)
def test_fork_waits_for_a_running_tool_description(server: Server, start: Any) -> None:
    # Pydantic's own locks, held by a thread the child does not have, would hang it for ever.
    output = finish(
        start(
            """
            import threading, warnings; warnings.simplefilter("ignore")
            from pydantic import GetPydanticSchema
            from typing import Annotated
            begun, described = threading.Event(), False
            def describe(source, handler):
                global described
                begun.set(); time.sleep(0.3); described = True
                return handler(int)
            @trail.tool(version="1")
            def slow(n: Annotated[int, GetPydanticSchema(describe)]): return n
            thread = threading.Thread(target=slow, args=(1,)); thread.start()
            begun.wait()
            pid = os.fork()
            if pid == 0:
                print("forked after" if described else "forked amid", flush=True)
                slow(2); echo(2)
                os._exit(0)
            os.waitpid(pid, 0)
            thread.join()
            echo(1)
            """
        )
    )
    assert output == "forked after\n"


@pytest.mark.sampled("processes of an executor", 2)
def test_spawned_children_and_daemon_threads_lose_no_events(
    server: Server, start: Any, make_trail: Any
) -> None:
    finish(
        start(
            f"""
            import multiprocessing, threading
            done = threading.Event()
            def forever():
                echo(1); done.set()
                while True: time.sleep(60)
            threading.Thread(target=forever, daemon=True).start()
            done.wait()
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=exec, args=({PROLOGUE + "echo(2)"!r}, {{}}))
            process.start(); process.join()
            assert process.exitcode == 0
            """
        )
    )
    assert [len(events) for events in by_producer(server).values()] == [2, 2]
    assert sorted(event["args"]["n"] for event in server.events if "args" in event) == [1, 2]


def test_events_of_another_key_are_never_sent(
    server: Server, start: Any, make_trail: Any, tmp_path: Path
) -> None:
    other = KEY.replace("key1", "key2")
    start("echo(1); os.kill(os.getpid(), 9)", TOOLTRAIL_API_KEY=other).communicate(timeout=60)
    adopt_segments(server, make_trail)
    assert {event["tool_name"] for event in server.events} == {"hello"}
    assert len(list(tmp_path.glob("*/*/*.open"))) == 1


def test_unwritable_spool_falls_back_to_memory_with_a_warning(server: Server, start: Any) -> None:
    process = start("echo(1); print(trail.flush(20))", TOOLTRAIL_SPOOL_DIR="/proc/nowhere")
    out, err = process.communicate(timeout=60)
    assert out == "True\n"
    assert "events are kept in memory only" in err
    assert len(server.events) == 2


def test_system_without_file_locks_keeps_events_in_memory_with_one_warning(
    server: Server, start: Any, tmp_path: Path
) -> None:
    """What Windows lacks is taken away; the SDK was not tried on Windows itself."""
    taken_away = "register_at_fork", "fork", "geteuid", "getuid"
    lines = ["import os, sys", "sys.modules['fcntl'] = None", *(f"del os.{n}" for n in taken_away)]
    (tmp_path / "sitecustomize.py").write_text("\n".join(lines))
    process = start("echo(1); echo(2); print(trail.flush(20))", PYTHONPATH=str(tmp_path))
    out, err = process.communicate(timeout=60)
    assert out == "True\n"
    assert err.count("events are kept in memory only") == 1
    assert len(server.events) == 4
    assert not list(tmp_path.rglob("*.open"))


def test_sdk_imports_no_django_and_starts_no_thread_before_the_first_event(start: Any) -> None:
    out = finish(
        start(
            """
            import threading
            print(any(name.split(".")[0] in ("django", "psycopg") for name in sys.modules))
            print(threading.active_count())
            """
        )
    )
    assert out == "False\n1\n"


@pytest.mark.sampled("processes of an executor", 2)
def test_call_that_forks_is_ended_only_by_the_parent(
    server: Server, start: Any, make_trail: Any
) -> None:
    finish(
        start(
            """
            import threading, warnings; warnings.simplefilter("ignore")
            @trail.tool(version="1")
            def forks():
                return os.fork()
            stop = False
            def busy():
                while not stop: echo(0)
            thread = threading.Thread(target=busy); thread.start()
            children = []
            for _ in range(20):
                pid = forks()
                if pid == 0:
                    echo(1)
                    os._exit(0)
                children.append(pid)
            for pid in children: os.waitpid(pid, 0)
            stop = True; thread.join()
            """
        )
    )
    adopt_segments(server, make_trail)
    kinds = Counter((each["tool_name"], each["type"]) for each in server.events)
    assert kinds["forks", "toolExecutionStart"] == kinds["forks", "toolExecutionEnd"] == 20
    assert all(map(is_contiguous, by_producer(server).values()))
    assert not server.gaps


@pytest.mark.generated(1)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_events_of_multiprocessing_children_are_sent_when_the_parent_exits(
    server: Server, start: Any, tmp_path: Path, method: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        PROLOGUE
        + textwrap.dedent(
            f"""
            import multiprocessing, warnings; warnings.simplefilter("ignore")
            if __name__ == "__main__":
                echo(0)
                context = multiprocessing.get_context("{method}")
                with context.Pool(2) as pool:
                    pool.map(echo, range(1, 41))
                process = context.Process(target=echo, args=(41,))
                process.start(); process.join()
            """
        )
    )
    finish(start(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"))
    ends = [each["output"]["data"] for each in server.events if each["type"].endswith("End")]
    assert sorted(ends) == list(range(42))
    assert all(map(is_contiguous, by_producer(server).values()))


@pytest.mark.sampled("processes of an executor", 2)
def test_terminated_process_accounts_for_every_event(
    server: Server, start: Any, make_trail: Any
) -> None:
    process = start(
        """
        import signal
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
        n = 0
        while True:
            echo(n)
            os.write(1, b"%d\\n" % n)
            n += 1
        """
    )
    for line in process.stdout:
        if int(line) == 500:
            break
    process.send_signal(signal.SIGTERM)
    out = finish(process)
    last = int(out.split()[-1]) if out.split() else 500
    # If the signal falls into the change of segments, the open one is left to the next process.
    adopt_segments(server, make_trail)
    [numbers] = (
        numbers for name, numbers in by_producer(server).items() if f"-{process.pid}-" in name
    )
    declared = {
        number
        for gap in server.gaps.values()
        for number in range(gap["from_seq"], gap["to_seq"] + 1)
    }
    # The signal may fall between an event's number and its write: then that number, which is
    # the last one, is a gap of its own.
    accounted = {*numbers, *declared}
    assert sorted(accounted) == list(range(max(accounted) + 1))
    assert len(declared) <= 1
    # The signal may also fall into the tool: that call failed, and it is the last one.
    ends = [each for each in server.events if each["type"] == "toolExecutionEnd"]
    failed = [each for each in ends if "data" not in each["output"]]
    assert len(failed) <= 1
    returned = {each["output"]["data"] for each in ends if each not in failed}
    assert set(range(last + 1)) <= returned


@pytest.mark.sampled("processes of an executor", 2)
def test_signal_handler_may_call_a_tool_while_another_call_wakes_the_shipper(start: Any) -> None:
    process = start(
        """
        import signal, threading
        from tooltrail.shipper import Shipper
        shipper = Shipper(None, None, None, max_age_days=7)
        shipper._thread = threading.current_thread()  # so that none is started
        signal.signal(signal.SIGALRM, lambda number, frame: shipper.wake())
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        ends = time.monotonic() + 1
        while time.monotonic() < ends: shipper.wake()
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("ended")
        """
    )
    assert finish(process) == "ended\n"


@pytest.mark.sampled("processes of an executor", 2)
def test_endless_daemon_threads_do_not_disturb_process_exit(
    server: Server, start: Any, make_trail: Any
) -> None:
    finish(
        start(
            """
            import threading
            done = threading.Event()
            def forever():
                for n in range(10 ** 9):
                    echo(n)
                    if n == 300: done.set()
            threads = [threading.Thread(target=forever, daemon=True) for _ in range(3)]
            for thread in threads: thread.start()
            done.wait()
            """
        )
    )
    adopt_segments(server, make_trail)
    assert len(server.events) > 600
    assert all(map(is_contiguous, by_producer(server).values()))


@pytest.mark.sampled("processes of an executor", 2)
def test_concurrent_tasks_and_threads_record_contiguous_events(server: Server, start: Any) -> None:
    finish(
        start(
            """
            import asyncio
            @trail.tool(version="1")
            async def slow(n):
                await asyncio.sleep(0)
                return await asyncio.to_thread(echo, n)
            async def main():
                await asyncio.gather(*(slow(n) for n in range(200)))
            asyncio.run(main())
            """
        )
    )
    kinds = Counter((each["tool_name"], each["type"]) for each in server.events)
    assert set(kinds.values()) == {200}
    assert len(kinds) == 4
    [numbers] = by_producer(server).values()
    assert is_contiguous(numbers)


def test_flush_after_each_call_leaves_no_waiting_events(server: Server, start: Any) -> None:
    process = start(
        """
        for n in range(5):
            echo(n)
            print(trail.flush(20), trail.stats().waiting, flush=True)
            sys.stdin.readline()
        """,
    )
    assert process.stdout is not None
    for n in range(5):
        assert process.stdout.readline() == "True 0\n"
        assert len(server.events) == 2 * (n + 1)
        process.stdin.write("\n")
        process.stdin.flush()
    finish(process)
