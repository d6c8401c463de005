"""When spool and shipper of a trail are open.

They are made with the first event, made again in a forked child, and closed when the process ends.
Nothing here raises into the host, except for a missing url or key with `when_full="raise"`.
"""

import atexit
import logging
import os
import threading
import weakref

from tooltrail.announcement import Announcer
from tooltrail.producer import Producer, Stats
from tooltrail.recording import Append
from tooltrail.settings import Settings

logger = logging.getLogger("tooltrail")


class Lifetime:
    """The part of a `Trail` that opens, flushes and closes; any thread and forked child may use it.

    Raises ValueError for a missing url or key with `when_full="raise"`.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._announcer = Announcer(self._complain)
        self._producer: Producer | None = None
        self._making = threading.RLock()  # a signal handler may call a tool meanwhile
        self._complained: set[str] = set()
        self._raises_when_full = self.settings.when_full == "raise"
        self.is_enabled = self._has_destination()
        _trails.add(self)

    def stats(self) -> Stats:
        """The counters of this process's events so far."""
        producer = self._producer
        return Stats() if producer is None else producer.stats()

    def flush(self, timeout: float = 10.0) -> bool:
        """Send what is waiting now, and wait up to `timeout` seconds.

        Returns whether the server has everything that was emitted before. Never raises.
        """
        producer = self._producer
        return producer is None or producer.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Flush, end the thread and release the spool. A later event opens them again.

        `timeout` is in seconds; default: the option `exit_timeout`. If the server does not
        answer, unsent events stay in the spool for the next process. Returns whether the server
        has everything. Never raises.
        """
        with self._making:
            producer, self._producer = self._producer, None
            _open_trails.discard(self)
        if producer is None:
            return True
        try:
            return producer.close(self.settings.exit_timeout if timeout is None else timeout)
        except OSError as error:
            self._complain(error)
            return False

    def lose(self, reason: str) -> None:
        """Declare that an event is lost which should have been recorded. Never raises.

        The server shows it as a gap in the numbers of this process, with the reason.
        """
        if not self.is_enabled:
            return
        try:
            (self._producer or self._make_producer()).spool.lose(reason)
        except Exception as error:
            self._complain(error)

    def _append_to(self) -> Append | None:
        """The function that keeps an event; None when the trail is off."""
        if not self.is_enabled:
            return None
        producer = self._producer or self._make_producer()
        if self._raises_when_full and producer.spool.is_full:
            return _refuse
        return producer.spool.append

    def _make_producer(self) -> Producer:
        with self._making:
            if self._producer is None:
                producer = self._open_producer()
                self._producer = self._producer or producer
                _open_trails.add(self)
            return self._producer

    def _open_producer(self) -> Producer:
        return Producer.open(self.settings, self._announcer, self._warn_once)

    def _has_destination(self) -> bool:
        if self.settings.url and self.settings.api_key:
            return True
        missing = "TOOLTRAIL_API_KEY" if self.settings.url else "TOOLTRAIL_URL"
        if self._raises_when_full:
            raise ValueError(f"{missing} is not set, but tools must not run unrecorded")
        logger.warning("tooltrail: %s is not set, so no calls are recorded", missing)
        return False

    def _after_fork(self) -> None:
        producer, self._producer = self._producer, None
        self._making = threading.RLock()
        self._announcer = self._announcer.for_child()
        if producer is not None:
            producer.spool.abandon()

    def _complain(self, error: Exception) -> None:
        """Report an internal error: warn once, never raise into the host."""
        self._warn_once(f"an event was lost because of an error in the SDK: {type(error).__name__}")
        logger.debug("tooltrail: the error was", exc_info=error)

    def _warn_once(self, message: str) -> None:
        if message not in self._complained:
            self._complained.add(message)
            logger.warning("tooltrail: %s", message)


_trails: weakref.WeakSet[Lifetime] = weakref.WeakSet()
_open_trails: set[Lifetime] = set()  # referenced here because they have events to send


def _refuse(head: bytes) -> bool:
    return False


def _close_all() -> None:
    for trail in list(_open_trails):
        trail.close()


def _after_fork_in_child() -> None:
    _open_trails.clear()
    for trail in list(_trails):
        trail._after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
