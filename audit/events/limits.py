"""The limits of a request, and the error for exceeding one.

Each limit bounds what a request can cost before it is rejected. After a 413, a producer sends
less at a time: half the lines, or a line without its payloads.
"""

MAX_COMPRESSED_BYTES = 5 * 1024 * 1024
MAX_INFLATED_BYTES = 20 * 1024 * 1024
MAX_RATIO = 100  # inflated to compressed size: a higher ratio is a bomb, not tool calls
RATIO_FREE_BYTES = 1024 * 1024  # up to this size, any ratio is harmless
MAX_LINES = 1000
MAX_LINE_BYTES = 1024 * 1024
MAX_DEPTH = 64
RAW_KEPT_BYTES = 64 * 1024  # most that the inbox keeps of a rejected line


class LimitExceededError(Exception):
    """A request is larger than allowed: 413. `code` names the limit."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
