"""What this installation has taken in since `up`, for Prometheus.

Each web process counts in a file of its own under `settings.METRICS_DIR`, an array of doubles
in a fixed order that is written by memory; whichever is asked adds all of them up. A process
that has died still counts: its file stays until the next `up`. No lock is shared, and counting
a request costs a few microseconds.
"""

import mmap
import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from config.version import VERSION

STAGES = ("read", "wait", "inflate", "store")
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0)
LAGS_S = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 3600.0, 21600.0, 86400.0, 604800.0)
_OUTCOMES = ("accepted", "duplicates", "rejected")  # as in the answer
_SPAN_OUTCOMES = ("call", "merged", "skipped", "refused")
_STATUSES = (200, 400, 411, 413, 415, 422, 429, 500, 503)

FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "tooltrail_requests_total": (
        "counter",
        "Requests with events or spans and a good key, by status.",
        tuple(f'{{status="{status}"}}' for status in _STATUSES),
    ),
    "tooltrail_events_total": (
        "counter",
        "Events of requests that were answered with 200, by what became of them.",
        tuple(f'{{outcome="{each}"}}' for each in _OUTCOMES),
    ),
    "tooltrail_spans_total": (
        "counter",
        "Spans of OTLP requests, by what became of them: a call, merged into one, no tool call.",
        tuple(f'{{outcome="{each}"}}' for each in _SPAN_OUTCOMES),
    ),
    "tooltrail_received_bytes_total": ("counter", "Bytes of bodies, as sent.", ("",)),
    "tooltrail_inflated_bytes_total": ("counter", "Bytes of bodies, inflated.", ("",)),
    "tooltrail_request_seconds": (
        "histogram",
        "How long requests took that were answered with 200.",
        (
            *(f'_bucket{{le="{bound}"}}' for bound in (*BUCKETS_S, "+Inf")),
            "_sum",
            "_count",
        ),
    ),
    "tooltrail_event_lag_seconds": (
        "histogram",
        "How long after the ends of calls their events were received; 0 where a clock is ahead.",
        (
            *(f'_bucket{{le="{bound}"}}' for bound in (*LAGS_S, "+Inf")),
            "_sum",
            "_count",
        ),
    ),
    "tooltrail_events_ahead_total": (
        "counter",
        "Ends of calls that lie ahead of the server's clock: a producer's, or ours, is wrong.",
        ("",),
    ),
    "tooltrail_stage_seconds": (
        "summary",
        "Where requests spent their time: reading, in line, inflating, in the transaction.",
        tuple(f'_{what}{{stage="{stage}"}}' for stage in STAGES for what in ("sum", "count")),
    ),
}
"""By name: type, meaning, and what follows the name in each of its lines."""

_LINES = [name + suffix for name, (_, _, suffixes) in FAMILIES.items() for suffix in suffixes]
_AT = {line: at for at, line in enumerate(_LINES)}
_SIZE = 8 * len(_LINES)


class Counters:
    """One process's counters, in the file `path`, which another process may read meanwhile."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._values = memoryview(_mapped(path)).cast("d")

    def add(self, amounts: Mapping[str, float]) -> None:
        """Add to some, each named as its line is. Raises KeyError for one there is not."""
        with self._lock:
            for line, amount in amounts.items():
                self._values[_AT[line]] += amount


def _mapped(path: Path) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.fstat(descriptor).st_size != _SIZE:
            # Written, not only made longer: without room for it, memory that is written to a
            # file kills the process.
            os.ftruncate(descriptor, 0)
            os.write(descriptor, bytes(_SIZE))
        return mmap.mmap(descriptor, _SIZE)
    except (OSError, ValueError):  # no room, or only for a part
        return mmap.mmap(-1, _SIZE)  # counted for nobody, until the process is replaced
    finally:
        os.close(descriptor)


@cache
def counters() -> Counters:
    """This process's."""
    return Counters(settings.METRICS_DIR / str(os.getpid()))


class Request:
    """What one request to the intake adds up to; `done` counts it."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._amounts: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """What passed since the last one was this stage."""
        now = time.perf_counter()
        self._amounts[f'tooltrail_stage_seconds_sum{{stage="{stage}"}}'] = now - self._last
        self._amounts[f'tooltrail_stage_seconds_count{{stage="{stage}"}}'] = 1
        self._last = now

    def stored(self, sent: int, inflated: int, answer: Mapping[str, Any]) -> None:
        """It was stored: its bytes, and what the answer says became of its events."""
        self._amounts["tooltrail_received_bytes_total"] = sent
        self._amounts["tooltrail_inflated_bytes_total"] = inflated
        for outcome in _OUTCOMES:
            became = answer[outcome]
            events = len(became) if isinstance(became, list) else became
            self._amounts[f'tooltrail_events_total{{outcome="{outcome}"}}'] = events

    def spans(self, counts: Mapping[str, int]) -> None:
        """What became of its spans, by outcome."""
        for outcome in _SPAN_OUTCOMES:
            self._amounts[f'tooltrail_spans_total{{outcome="{outcome}"}}'] = counts[outcome]

    def done(self, status: int) -> None:
        """It is answered."""
        seconds = time.perf_counter() - self._began
        self._amounts[f'tooltrail_requests_total{{status="{status}"}}'] = 1
        if status == 200:
            for bound in BUCKETS_S:
                if seconds <= bound:
                    self._amounts[f'tooltrail_request_seconds_bucket{{le="{bound}"}}'] = 1
            self._amounts['tooltrail_request_seconds_bucket{le="+Inf"}'] = 1
            self._amounts["tooltrail_request_seconds_sum"] = seconds
            self._amounts["tooltrail_request_seconds_count"] = 1
        counters().add(self._amounts)


def count_lags(ended_us: Sequence[int], received_us: int) -> None:
    """Count the ends of a request that was stored, by how old they were."""
    if not ended_us:
        return
    lags_s = [(received_us - each) / 1_000_000 for each in ended_us]
    found = Counter(bisect_left(LAGS_S, lag) for lag in lags_s)
    so_far = 0
    amounts: dict[str, float] = {}
    for place, bound in enumerate((*LAGS_S, "+Inf")):
        so_far += found[place]
        amounts[f'tooltrail_event_lag_seconds_bucket{{le="{bound}"}}'] = so_far
    amounts["tooltrail_event_lag_seconds_sum"] = sum(lag for lag in lags_s if lag > 0)
    amounts["tooltrail_event_lag_seconds_count"] = len(lags_s)
    amounts["tooltrail_events_ahead_total"] = sum(lag < 0 for lag in lags_s)
    counters().add(amounts)


def totals(folder: Path) -> list[float]:
    """The sums over all processes, in the order of the lines."""
    sums = [0.0] * len(_LINES)
    for path in folder.glob("[0-9]*"):
        data = path.read_bytes()
        if len(data) == _SIZE:
            for at, value in enumerate(memoryview(data).cast("d")):
                sums[at] += value
    return sums


def exposition(gauges: Mapping[str, tuple[str, float]]) -> str:
    """Everything in Prometheus' text format; `gauges` by name: meaning and value now."""
    return "".join(f"{line}\n" for line in _exposed(gauges))


def _exposed(gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
    yield "# HELP tooltrail_build_info Which version this is; always 1."
    yield "# TYPE tooltrail_build_info gauge"
    yield f'tooltrail_build_info{{version="{VERSION}"}} 1'
    sums = iter(totals(settings.METRICS_DIR))
    for name, (kind, meaning, suffixes) in FAMILIES.items():
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} {kind}"
        for suffix in suffixes:
            yield f"{name}{suffix} {next(sums):.12g}"
    for name, (meaning, value) in gauges.items():
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} gauge"
        yield f"{name} {value:.12g}"
