"""Kills this process before a line of packages that it runs, so that a test can choose where."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any


def die_at_line(package: ModuleType, last: int, *more: ModuleType) -> Callable[[], int]:
    """From now on, kill the process (SIGKILL) before it runs so many lines, in any thread.

    With 0 it lives. Returns what ends the count and says how many lines it ran.
    """
    folders = tuple(str(Path(each.__file__ or "").parent) for each in (package, *more))
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(folders):
            return None
        if event == "line":
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    def end() -> int:
        sys.settrace(None)
        return count

    threading.settrace(trace)
    sys.settrace(trace)
    return end
