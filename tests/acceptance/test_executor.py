"""End to end: the calls of a real executor are sent, stored and shown.

Nothing here is in this process but the looking: the executor, the server and the browser are
processes of their own.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast
from tests.support.sign_in import sign_in

if TYPE_CHECKING:
    from tests.support.server import LiveServer

START_SEEN_WITHIN_S = 3.0
"""What issue and README promise: a start is on the page that long after the call."""
_PATIENCE_S = 60.0  # for everything nobody was promised a time for
_EXECUTOR = Path(__file__).parents[1] / "support" / "example_executor.py"

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run(live_server: "LiveServer", acme: Cast, tmp_path: Path) -> Iterator[Run]:
    """Start the executor with a key of acme's that may only send, and a spool of its own."""
    key = create_key(acme.tenant, "executor", [Scope.INGEST])[1]
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, str(_EXECUTOR), *arguments],
            cwd=tmp_path,
            env={
                "PATH": "",
                "TOOLTRAIL_URL": live_server.url,
                "TOOLTRAIL_API_KEY": key,
                "TOOLTRAIL_SPOOL_DIR": str(tmp_path / "spool"),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _hear(process: "subprocess.Popen[str]", what: str) -> float:
    """Wait for the executor to say it; when it did, as seconds since the epoch."""
    assert process.stdout is not None
    word, _, at = process.stdout.readline().partition(" ")
    assert word == what
    return float(at)


def _reload_until(page: Page, address: str, is_there: Callable[[Page], Any]) -> float:
    """Open the page again and again until something is there; the time it was seen."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        page.goto(address)
        if is_there(page):
            return time.time()
        assert time.monotonic() < deadline, page.content()


def _count(page: Page, name: str) -> int:
    """A figure of the trace's head, such as "Calls"."""
    fact = page.locator(".facts > div").filter(has=page.locator("dt", has_text=name))
    return int(fact.locator("dd").first.inner_text().split()[0].replace(",", ""))


def test_start_is_shown_while_the_call_runs_and_the_end_afterwards(
    page: Page, acme: Cast, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    trace_id = f"trace-{uuid4().hex}"
    sign_in(page, acme.editor)
    process = run(trace_id, "hold")
    called_at = _hear(process, "running")
    row = f"tr:has(a[title='{trace_id}'])"
    seen_at = _reload_until(page, "/traces/", lambda page: page.locator(row).count())
    with capsys.disabled():
        sys.stdout.write(f"\n  a start was seen {seen_at - called_at:.2f} s after the call\n")
    assert seen_at - called_at <= START_SEEN_WITHIN_S

    expect(page.locator(row)).to_contain_text("export_report")
    page.get_by_role("link", name=trace_id).click()
    panel = page.locator("#call-panel")
    expect(panel).to_contain_text("No end event yet")
    expect(panel).to_contain_text("march")
    expect(page.locator(".calls li")).to_have_count(1)

    assert process.stdin is not None
    process.stdin.write("go on\n")
    process.stdin.flush()
    _hear(process, "returned")
    assert process.wait(_PATIENCE_S) == 0
    _reload_until(page, page.url, lambda page: page.get_by_text("all ok").count())
    expect(panel).to_contain_text("march.pdf")
    expect(panel.locator("summary").filter(has_text="#")).to_have_count(2)
    expect(page.locator(".calls li")).to_have_count(1)


def test_killed_executor_leaves_open_calls_and_loses_none(
    page: Page, acme: Cast, run: Run, tmp_path: Path
) -> None:
    def waiting() -> list[Path]:
        return [path for path in tmp_path.glob("spool/*/*/*") if path.name != "lock"]

    killed, after = (f"trace-{uuid4().hex}" for _ in range(2))
    sign_in(page, acme.editor)
    process = run(killed, "work", "150", "3")
    assert process.wait(_PATIENCE_S) == -9
    assert waiting(), "killed in the midst of its work it had no time to send"
    restarted = run(after, "once")
    assert restarted.wait(_PATIENCE_S) == 0
    assert waiting() == []

    _reload_until(page, f"/traces/{after}", lambda page: page.locator(".calls li").count())
    address = f"/traces/{killed}"
    _reload_until(
        page, address, lambda page: page.locator(".facts").count() and _count(page, "Calls") == 153
    )
    expect(page.get_by_role("heading", level=1)).to_contain_text("3 open")
    expect(page.get_by_role("heading", level=1)).to_contain_text("150 violations")
    page.goto(f"{address}?only=open")
    open_calls = page.locator(".calls li")
    expect(open_calls).to_have_count(3)
    expect(open_calls.locator(".sr-only")).to_have_text(
        [f"open, level {level}: " for level in (1, 2, 3)]
    )
    page.goto(f"{address}?find=count_pages")
    drawn = page.locator('.calls li[id^="c-"]').count()
    later = page.locator(".calls .rows-unloaded").all()  # as they are scrolled to
    assert drawn + sum(int(each.get_attribute("data-count") or 0) for each in later) == 150
