"""A progress bar for a terminal: one line that is redrawn in place."""

import sys
from collections.abc import Callable

WIDTH = 30


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


class Bar:
    """Draws only if `is_shown`, which must be False if the output is not a terminal."""

    def __init__(self, *, is_shown: bool, write: Callable[[str], object] = _to_stderr) -> None:
        self._is_shown = is_shown
        self._write = write
        self._is_drawn = False

    def draw(self, share: float, text: str) -> None:
        """Draw the share that is done, from 0 to 1, with a text after it."""
        share = min(max(share, 0.0), 1.0)
        filled = int(WIDTH * share)
        self.draw_text(f"{'█' * filled:░<{WIDTH}} {share:4.0%}  {text}")

    def draw_text(self, text: str) -> None:
        """Draw only a text, if the total is unknown."""
        if self._is_shown:
            self._write(f"\r{text}")
            self._is_drawn = True

    def end(self) -> None:
        """End the bar's line, if one was drawn."""
        if self._is_drawn:
            self._write("\n")
            self._is_drawn = False

    def erase(self) -> None:
        """Remove the bar, if one was drawn."""
        if self._is_drawn:
            self._write("\r\x1b[K")
            self._is_drawn = False
