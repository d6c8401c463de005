"""The thread that sends a spool's batches to the server.

Owns when to send, what each answer means for the batch, and the spool's limits of bytes and
days. It never raises into the host and never logs a payload. The host waits for it only in
`flush`.
"""

import logging
import random
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

from tooltrail.events import CONTRACT_VERSION
from tooltrail.spool import Batch, DamagedError, Spool
from tooltrail.spool.acknowledged import acknowledgement
from tooltrail.spool.lines import SINCE_VERSION_2
from tooltrail.spool.slim import slim_line
from tooltrail.transport import Answer, Transport, UnreachableError

logger = logging.getLogger("tooltrail")

LINGER_SECONDS = 0.2  # a first event waits this long for others
PACE_SECONDS = 1.0  # between batches that are not full, until the server asks for longer
PACE_MAX_SECONDS = 30.0
BACKOFF_MAX_SECONDS = 60.0
ASK_AGAIN_SECONDS = 600.0  # a server of version 1 may be upgraded
REFUSED_SECONDS = 60.0  # after 401, 403 or 404: someone may correct the key or address
KEEP_HOUSE_SECONDS = 10.0
DAY_SECONDS = 86_400.0
FLUSH_POLL_SECONDS = 0.5  # how often a flush checks that its thread is alive
# Spreads load. The host's own `random` must stay as it is: a host may have seeded it.
_RANDOM = random.SystemRandom()


class Announcer(Protocol):
    """Sends further data to the server between batches."""

    def announce(self, transport: Transport) -> None:
        """Announce what has not been announced yet. Raises UnreachableError."""


class Shipper:
    """Sends from its own daemon thread, which starts with the first event."""

    def __init__(
        self,
        spool: Spool,
        transport: Transport,
        announcer: Announcer,
        *,
        max_age_days: float,
        keeps_all: bool = False,
    ) -> None:
        self.acknowledged = self.duplicates = self.rejected = 0
        self._spool = spool
        self._transport = transport
        self._announcer = announcer
        self._max_age_seconds = max_age_days * DAY_SECONDS
        self._keeps_all = keeps_all
        # Not an Event: a signal handler that raises within its `set` leaves it locked for ever, and
        # one that calls a tool waits for itself. The queue's `put` cannot be interrupted.
        self._wakes = SimpleQueue[None]()
        self._turned = threading.Condition()
        self._failed_turns = 0
        self._failures_in_a_row = 0
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._starting = threading.RLock()  # a signal handler may try to start it, too
        self._is_starting = False
        self._pace = PACE_SECONDS
        self._last_batch_at = -PACE_MAX_SECONDS
        self._seal_at: float | None = None  # when to seal the open segment, full or not
        self._retry_at = 0.0  # our own backoff; a flush overrides it once
        self._allowed_at = 0.0  # the server's Retry-After; nothing overrides it
        self._next_housekeeping_at = 0.0
        self._warned: set[str] = set()
        self._contract: int | None = None  # the server's version; None until it has answered
        self._ask_again_at = 0.0
        self._has_held = False  # since the last answer of a server of this version

    def wake(self) -> None:
        """Signal that there is something to send. Starts the thread if needed. Never waits."""
        if self._thread is None:
            self._start()
        if self._wakes.empty():
            self._wakes.put(None)

    def flush(
        self, timeout: float, *, give_up_on_failure: bool = False, hurries: bool = True
    ) -> bool:
        """Send what is in the spool now, and wait for that up to `timeout` seconds.

        Returns whether the server has all of it. With `give_up_on_failure` the first failed
        attempt ends the wait. `hurries` ends our own backoff.
        """
        deadline = time.monotonic() + timeout
        self._spool.declare()
        self._spool.seal()
        target = self._spool.last_order()
        failed = self._failed_turns
        if self._is_sent(target):
            return True
        if hurries:
            self._retry_at = 0.0
        self.wake()
        with self._turned:
            while not self._is_sent(target):
                left = deadline - time.monotonic()
                if left <= 0 or self._thread is None or not self._thread.is_alive():
                    return False
                if give_up_on_failure and self._failed_turns > failed:
                    return False
                if self._spool.oldest() is None and not self._spool.open_count:
                    return self._is_sent(target)  # what is left is held
                self._turned.wait(min(left, FLUSH_POLL_SECONDS))
        return True

    def stop(self, timeout: float) -> None:
        """End the thread after its current task, waiting up to `timeout` seconds."""
        self._stopping = True
        self._wakes.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _is_sent(self, target: int) -> bool:
        return all(each.order > target for each in self._spool.batches())

    def _start(self) -> None:
        with self._starting:
            if self._is_starting or self._thread is not None or self._stopping:
                return
            self._is_starting = True
            thread = threading.Thread(target=self._run, name="tooltrail-shipper", daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError:  # the interpreter is shutting down: the spool keeps the events
                pass
            finally:
                self._is_starting = False

    def _run(self) -> None:
        while not self._stopping:
            with suppress(Empty):
                self._wakes.get(timeout=self._seconds_to_wait())
            if self._stopping:
                break
            try:
                succeeded = self._turn()
            except Exception as error:
                succeeded = self._failed(f"shipping failed: {type(error).__name__}")
                logger.debug("tooltrail: shipping failed", exc_info=True)
            with self._turned:
                self._failed_turns += not succeeded
                self._turned.notify_all()
        self._transport.close()

    def _seconds_to_wait(self) -> float:
        """Seconds until there is something to do, unless the thread is woken."""
        due = self._next_housekeeping_at
        if self._spool.oldest() is not None:
            due = min(due, self._may_send_at())
        elif self._spool.open_count:
            due = min(due, max(self._seal_at or 0.0, self._may_send_at()))
        return max(due - time.monotonic(), 0.0)

    def _may_send_at(self) -> float:
        return max(self._retry_at, self._allowed_at)

    def _turn(self) -> bool:
        """Do housekeeping if it is due, then send what is due. False if the server failed."""
        now = time.monotonic()
        if now >= self._next_housekeeping_at:
            jitter = _RANDOM.uniform(0.8, 1.2)
            self._next_housekeeping_at = now + KEEP_HOUSE_SECONDS * jitter
            self._spool.declare()
            self._spool.adopt()
            if now >= self._ask_again_at and self._spool.release():
                self._contract = None
        if now < self._may_send_at():
            # Not while the server accepts events, unless they arrive faster than they are sent:
            # sending makes room without losing anything.
            self._keep_budget()
            return self._spool.oldest() is None
        while not self._stopping:
            batch = self._spool.oldest()
            if batch is not None:
                if not self._send(batch):
                    return False
                if self._spool.is_overflowing:
                    self._keep_budget()
            elif self._is_time_to_seal():
                self._spool.seal()
            else:
                break
        try:
            self._announcer.announce(self._transport)
        except UnreachableError as error:
            return self._failed(f"the server is unreachable: {error}")
        return True

    def _is_time_to_seal(self) -> bool:
        if not self._spool.open_count:
            self._seal_at = None
            return False
        now = time.monotonic()
        if self._seal_at is None:
            self._seal_at = max(self._last_batch_at + self._pace, now + LINGER_SECONDS)
        if now < self._seal_at:
            return False
        self._seal_at = None
        return True

    # Sending

    def _send(self, batch: Batch) -> bool:
        """Send one batch and handle the answer. False if the next batch must wait."""
        try:
            lines = self._spool.read(batch)
        except DamagedError:
            self._warn("a batch is damaged")
            return self._mend(batch)
        except OSError as error:
            self._warn(f"cannot read a batch: {type(error).__name__}")
            self._spool.give_up(batch, "unreadable")
            return True
        if not lines:
            self._spool.discard(batch)
            return True
        if self._contract != CONTRACT_VERSION:
            succeeded = self._set_newer_aside(batch, lines)
            if succeeded is not None:
                return succeeded
        self._last_batch_at = time.monotonic()
        try:
            answer = self._transport.post_events(lines, batch.id)
        except UnreachableError as error:
            return self._failed(f"the server is unreachable: {error}")
        if answer.status == 200:
            self._note_contract(answer.contract)
        return self._heed(batch, lines, answer)

    def _set_newer_aside(self, batch: Batch, lines: list[bytes]) -> bool | None:
        """Split a batch with newer events, or hold it.

        None if it may be sent, False after a failure. A server of version 1 would put decisions and
        definitions into its inbox, from where somebody would have to send them again, and would
        take interim events for ends. So they wait here until it is upgraded.
        """
        newer = [line for line in lines if line.startswith(SINCE_VERSION_2)]
        if not newer:
            return None
        if len(newer) < len(lines):
            others = [line for line in lines if not line.startswith(SINCE_VERSION_2)]
            try:
                self._spool.replace(batch, [others, newer], is_slim=batch.is_slim)
            except OSError as error:
                return self._failed(f"cannot split a batch: {type(error).__name__}")
            return True
        if self._contract is None:
            try:
                answer = self._transport.ask_contract()
            except UnreachableError as error:
                return self._failed(f"the server is unreachable: {error}")
            if answer.contract == 1 and answer.status != 405:
                return self._failed(f"the server returned {answer.status}")
            self._note_contract(answer.contract)
        if self._contract == CONTRACT_VERSION:
            return None
        self._ask_again_at = time.monotonic() + ASK_AGAIN_SECONDS
        self._spool.hold(batch)
        if not self._has_held:
            self._has_held = True
            logger.warning(
                "tooltrail: the server is older than this SDK and does not know decisions about"
                " calls, definitions of tools, or calls that wait; they are kept until it is"
                " upgraded"
            )
        return True

    def _note_contract(self, version: int) -> None:
        """Note the server's version. Held batches are sent to a newer server."""
        self._contract = min(version, CONTRACT_VERSION)
        if self._contract == CONTRACT_VERSION:
            self._has_held = False
            self._spool.release()

    def _heed(self, batch: Batch, lines: list[bytes], answer: Answer) -> bool:
        status = answer.status
        if status == 200 and isinstance(answer.document.get("accepted"), int):
            self._acknowledged(batch, lines, answer)
            return True
        if status == 413:
            return self._make_smaller(batch, lines)
        if status in (401, 403, 404, 405):
            self._allowed_at = time.monotonic() + REFUSED_SECONDS
            return self._failed(f"the server rejects the key or the URL ({status})")
        if 400 <= status < 500 and status not in (408, 425, 429):
            self._warn(f"the server rejected a batch ({status}); it was moved to rejected/")
            return self._park(batch, f"{status} {answer.document.get('detail', '')}".strip())
        if answer.retry_after is not None:
            self._allowed_at = time.monotonic() + answer.retry_after * _RANDOM.uniform(1.0, 1.2)
        return self._failed(f"the server returned {status}")

    def _acknowledged(self, batch: Batch, lines: list[bytes], answer: Answer) -> None:
        document = answer.document
        kept = acknowledgement(document, batch.id, lines)
        if kept is not None:
            self._spool.keep_acknowledged(kept)
        self._spool.discard(batch)
        self.acknowledged += len(lines)
        self.duplicates += _count(document.get("duplicates"))
        rejected = document.get("rejected")
        if isinstance(rejected, list) and rejected:
            self.rejected += len(rejected)
            self._warn("the server rejected some events and put them into its inbox")
        next_after_ms = document.get("next_after_ms")
        self._pace = PACE_SECONDS
        if isinstance(next_after_ms, int | float) and next_after_ms > 0:
            self._pace = min(max(next_after_ms / 1000, PACE_SECONDS), PACE_MAX_SECONDS)
        if self._failures_in_a_row:
            logger.info("tooltrail: the server is reachable again")
        self._failures_in_a_row = 0
        self._warned.clear()

    def _make_smaller(self, batch: Batch, lines: list[bytes]) -> bool:
        """Split a batch that is too large for the server; a single event loses its payloads."""
        try:
            if len(lines) > 1:
                half = len(lines) // 2
                self._spool.replace(batch, [lines[:half], lines[half:]], is_slim=batch.is_slim)
            elif not batch.is_slim:
                self._spool.replace(batch, [[slim_line(lines[0], "too-large")]], is_slim=True)
            else:
                return self._park(batch, "413")
        except OSError as error:
            return self._failed(f"cannot split a batch: {type(error).__name__}")
        return True

    def _mend(self, batch: Batch) -> bool:
        try:
            self._spool.mend(batch)
        except OSError as error:
            return self._failed(f"cannot repair a damaged batch: {type(error).__name__}")
        return True

    def _park(self, batch: Batch, reason: str) -> bool:
        try:
            self._spool.park(batch, reason)
        except OSError as error:
            return self._failed(f"cannot move a batch to rejected/: {type(error).__name__}")
        return True

    def _failed(self, message: str) -> bool:
        self._warn(message)
        ceiling = min(BACKOFF_MAX_SECONDS, 2.0**self._failures_in_a_row)
        self._failures_in_a_row = min(self._failures_in_a_row + 1, 10)
        self._retry_at = time.monotonic() + ceiling * _RANDOM.uniform(0.5, 1.0)
        return False

    def _warn(self, message: str) -> None:
        """Log a message once, until the server accepts events again."""
        if message not in self._warned:
            self._warned.add(message)
            logger.warning("tooltrail: %s; events are kept", message)

    # Budget

    def _keep_budget(self) -> None:
        """Drop what is too old or too much: payloads first, then the oldest events."""
        if self._keeps_all:
            return
        for batch in self._spool.batches():
            if time.monotonic() - batch.since > self._max_age_seconds:
                self._spool.give_up(batch, "expired")
        while self._spool.is_full and not self._stopping:
            batches = self._spool.batches()
            whole = next((batch for batch in batches if not batch.is_slim), None)
            if not batches:
                return
            if whole is None or not self._slim(whole):
                self._spool.give_up(batches[0], "spool-full")

    def _slim(self, batch: Batch) -> bool:
        """Remove the payloads of a batch; False if the disk has no room even for the rest."""
        try:
            lines = [slim_line(line, "spool-full") for line in self._spool.read(batch)]
            self._spool.replace(batch, [lines], is_slim=True)
        except OSError:
            return False
        return True


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
