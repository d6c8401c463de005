"""Ctrl-C while modules are imported, which takes seconds on a busy machine.

Python raises KeyboardInterrupt wherever it is. In the callback of a weak reference or in a
destructor it is only printed, and the program continues: an import runs thousands of these. Nothing
has to be cleaned up at that time, so the process just exits.
"""

import os
import signal
from types import FrameType
from typing import NoReturn

EXIT_CODE = 130
MESSAGE = "\ntooltrail: interrupted\n"


def exit_at_once() -> None:
    """Let Ctrl-C end this process immediately, unless it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, so that a command can clean up."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(_number: int, _frame: FrameType | None) -> NoReturn:
    os.write(2, MESSAGE.encode())  # sys.stderr may be in use by what was interrupted
    os._exit(EXIT_CODE)
