"""Runs the Python blocks of a Markdown page, each by itself, as its reader would.

A block followed by a `text` block must print just that. `Trail` records into memory, and what
it recorded must be what the server accepts. Test functions in a block are called.
"""

import inspect
import os
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import tooltrail
from tooltrail.events import Event
from tooltrail.testing import MemoryTrail

_BLOCK = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One block: where its code begins, and what it must print, None where the page is silent."""

    page: Path
    line: int
    code: str
    output: str | None


def blocks(page: Path) -> pytest.MarkDecorator:
    """Parametrise a test with every `block` of a page. There must be at least one."""
    examples = list(_blocks(page))
    assert examples, f"{page} shows no Python"
    parameters = [pytest.param(each, id=f"line-{each.line}") for each in examples]
    return pytest.mark.parametrize("block", parameters)


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        yield Block(page, line, match[1], match[2])


def run(block: Block, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Run a block, check what it prints, and return the events it recorded, as read by the server.

    Raises what the block raises.
    """
    trails: list[MemoryTrail] = []

    class RecordingTrail(MemoryTrail):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            trails.append(self)

    for name in [name for name in os.environ if name.startswith("TOOLTRAIL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(tooltrail, "Trail", RecordingTrail)
    monkeypatch.setattr(tooltrail.testing, "MemoryTrail", RecordingTrail)
    # Numbered as in the page, so that a traceback leads there.
    code = compile("\n" * (block.line - 1) + block.code, str(block.page), "exec")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = StringIO()
    with redirect_stdout(printed):
        exec(code, namespace)
        for test in [each for name, each in namespace.items() if name.startswith("test_")]:
            _call_test(test, RecordingTrail)
    if block.output is not None:
        assert printed.getvalue() == block.output
    try:
        return [event for trail in trails for event in trail.models]
    finally:
        for trail in trails:
            trail.close()


def _call_test(test: Callable[..., None], make_trail: Callable[[], MemoryTrail]) -> None:
    wanted = inspect.signature(test).parameters
    assert set(wanted) <= {"tooltrail_trail"}, "the only fixture a page may use is ours"
    test(**{name: make_trail() for name in wanted})
