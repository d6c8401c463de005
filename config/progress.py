"""Progress of a command: a bar on a terminal, elsewhere a line every 10 s."""

import time

from django.core.management.base import OutputWrapper
from tooltrail.cli.bar import Bar

_EVERY_SECONDS = {True: 0.1, False: 10.0}


class Progress:
    """Call it with the number done and the total. It updates rarely, so calls cost little."""

    def __init__(self, output: OutputWrapper, what: str, unit: str) -> None:
        self._output = output
        self._what = what
        self._unit = unit
        self._is_terminal = output.isatty()
        self._bar = Bar(is_shown=self._is_terminal, write=self._as_it_is)
        self._shown_at = 0.0 if self._is_terminal else time.monotonic()

    def __call__(self, done: int, size: int) -> None:
        if self._is_terminal and done >= size:
            self._bar.erase()
            return
        now = time.monotonic()
        if now - self._shown_at < _EVERY_SECONDS[self._is_terminal]:
            return
        self._shown_at = now
        share = min(1.0, done / size) if size else 1.0
        figures = f"{done:,} of {size:,} {self._unit}"
        if self._is_terminal:
            self._bar.draw(share, f"{self._what} {figures}")
        else:
            self._output.write(f"{self._what} {share:4.0%} {figures}", str)

    def _as_it_is(self, text: str) -> None:
        self._output.write(text, str, ending="")
