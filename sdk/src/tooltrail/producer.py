"""The producer of one process: its spool, and the shipper that empties it.

Owns making both from the settings, closing them, and their counters. A forked child drops its
parent's producer and makes its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from tooltrail.announcement import Announcer
from tooltrail.settings import Settings
from tooltrail.shipper import Shipper
from tooltrail.spool import Spool
from tooltrail.spool.base import SPILL_BYTES
from tooltrail.spool.home import HAS_FILE_LOCKS, make_root
from tooltrail.spool.memory import MemorySpool
from tooltrail.spool.segments import SegmentSpool
from tooltrail.transport import Transport

USER_AGENT = "tooltrail-python/0.1"
_THREAD_ENDS_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Stats:
    """What happened to the events of this process since it started.

    - `emitted`: events recorded so far.
    - `written`: events that were written to a file. The other emitted events are in memory, were
      sent from there, or were dropped.
    - `adopted`: events taken over from dead processes.
    - `sent`, `acknowledged`: events the server has confirmed (both are the same number).
    - `duplicates`: confirmed events that the server already had.
    - `rejected`: confirmed events that the server rejected; they wait in its inbox.
    - `in_memory`: waiting events that are in no file.
    - `waiting`: events not confirmed yet, including the gap events that declare losses.
    - `dropped`: lost events, counted by reason.
    """

    emitted: int = 0
    written: int = 0
    adopted: int = 0
    sent: int = 0
    acknowledged: int = 0
    duplicates: int = 0
    rejected: int = 0
    in_memory: int = 0
    waiting: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)


class Producer:
    """Spool and shipper. Without a shipper, events stay in the spool."""

    def __init__(self, spool: Spool, shipper: Shipper | None = None) -> None:
        self.spool = spool
        self.shipper = shipper

    @classmethod
    def open(
        cls, settings: Settings, announcer: Announcer, warn: Callable[[str], None]
    ) -> "Producer":
        """Make the producer from the settings; the spool is in memory if no file can be made."""
        url, api_key = cast("str", settings.url), cast("str", settings.api_key)
        producer: Producer | None = None

        def ready() -> None:
            if producer is not None and producer.shipper is not None:
                producer.shipper.wake()

        spool = _open_spool(settings, url, api_key, ready, warn)
        shipper = Shipper(
            spool,
            Transport(url, api_key, USER_AGENT),
            announcer,
            max_age_days=settings.max_age_days,
            keeps_all=settings.when_full == "raise",
        )
        producer = cls(spool, shipper)
        return producer

    def flush(self, timeout: float, *, hurries: bool = True) -> bool:
        """Send what is waiting, and wait up to `timeout` seconds. True if the server has it all.

        With `hurries` the first attempt starts at once, even if the last one has just failed.
        """
        return self.shipper is None or self.shipper.flush(timeout, hurries=hurries)

    def close(self, timeout: float) -> bool:
        """Try to send what is waiting, end the thread, and leave the rest for another process.

        Sends what forked children left behind, too. `timeout` is in seconds. Returns whether
        the server has everything. Raises OSError.
        """
        is_sent = True
        if self.shipper is not None:
            self.spool.adopt(timeout)
            is_sent = self.shipper.flush(timeout, give_up_on_failure=True)
            self.shipper.stop(_THREAD_ENDS_SECONDS)
        self.spool.close()
        return is_sent

    def stats(self) -> Stats:
        """The counters of spool and shipper."""
        counts = self.spool.snapshot()
        if self.shipper is not None:
            for name in ("acknowledged", "duplicates", "rejected"):
                counts[name] = getattr(self.shipper, name)
            counts["sent"] = self.shipper.acknowledged
        return Stats(**counts)


def _open_spool(
    settings: Settings,
    url: str,
    api_key: str,
    ready: Callable[[], None],
    warn: Callable[[str], None],
) -> Spool:
    if settings.spool == "memory":
        return MemorySpool(settings.max_bytes, ready)
    must_keep = settings.when_full == "raise"
    try:
        if not HAS_FILE_LOCKS:
            raise OSError("no file locks")
        root = make_root(settings.spool_dir, url, api_key)
    except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home directory
        reason = type(error).__name__
        if must_keep and HAS_FILE_LOCKS:  # a spool of 0 bytes rejects every event
            warn(f"cannot create a spool file ({reason}), so tools do not run")
            return MemorySpool(0, ready)
        warn(f"cannot create a spool file ({reason}), so events are kept in memory only")
        return MemorySpool(settings.max_bytes, ready)
    return SegmentSpool(
        root,
        settings.max_bytes,
        ready,
        fsync=settings.spool == "fsync",
        # With when_full="raise", a tool must not run if its record would be in memory only.
        spill_bytes=0 if must_keep else SPILL_BYTES,
    )
