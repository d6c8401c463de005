"""How far a command has come: a bar on a terminal, elsewhere a line now and then."""

import time

from django.core.management.base import OutputWrapper

_EVERY_SECONDS = {True: 0.1, False: 10.0}
_BAR = 30


class Progress:
    """Called with how much is done, and of how much; shows it seldom enough to cost nothing."""

    def __init__(self, output: OutputWrapper, what: str, unit: str) -> None:
        self._output = output
        self._what = what
        self._unit = unit
        self._is_terminal = output.isatty()
        self._shown_at = 0.0 if self._is_terminal else time.monotonic()

    def __call__(self, done: int, size: int) -> None:
        now = time.monotonic()
        is_end = self._is_terminal and done >= size
        if now - self._shown_at < _EVERY_SECONDS[self._is_terminal] and not is_end:
            return
        self._shown_at = now
        share = min(1.0, done / size) if size else 1.0
        figures = f"{self._what} {share:4.0%} {done:,} of {size:,} {self._unit}"
        if self._is_terminal:
            bar = "█" * int(share * _BAR)
            end = "\r" if done < size else "\r\x1b[K"
            self._output.write(f"\r{bar:·<{_BAR}} {figures}{end}", str, ending="")
        else:
            self._output.write(figures, str)
