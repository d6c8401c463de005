"""What this installation has received since `up`, for Prometheus.

Each web process counts in its own file under `settings.METRICS_DIR`: a memory-mapped array of
doubles in a fixed order. The process that answers a scrape adds up all files. A process that has
died still counts, because its file stays until the next `up`. Processes share no lock, and counting
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
_SPAN_OUTCOMES = ("call", "merged", "decision", "skipped", "refused")
_SIGNALS = ("traces", "logs", "metrics")
_STATUSES = (200, 400, 411, 413, 415, 422, 429, 500, 503)
_CLASSES = ("2xx", "3xx", "4xx", "5xx")


def _histogram(bounds: Sequence[float]) -> tuple[str, ...]:
    return (*(f'_bucket{{le="{bound}"}}' for bound in (*bounds, "+Inf")), "_sum", "_count")


FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "tooltrail_requests_total": (
        "counter",
        "Requests with events or spans and a valid key, by status.",
        tuple(f'{{status="{status}"}}' for status in _STATUSES),
    ),
    "tooltrail_events_total": (
        "counter",
        "Events in requests answered with 200, by outcome.",
        tuple(f'{{outcome="{each}"}}' for each in _OUTCOMES),
    ),
    "tooltrail_spans_total": (
        "counter",
        "Spans and log records by outcome: call, merged into one, not a tool call, rejected.",
        tuple(f'{{outcome="{each}"}}' for each in _SPAN_OUTCOMES),
    ),
    "tooltrail_otlp_requests_total": (
        "counter",
        "OTLP requests by signal. Metrics are accepted and not read.",
        tuple(f'{{signal="{each}"}}' for each in _SIGNALS),
    ),
    "tooltrail_received_bytes_total": ("counter", "Bytes of request bodies as sent.", ("",)),
    "tooltrail_inflated_bytes_total": (
        "counter",
        "Bytes of request bodies, inflated.",
        ("",),
    ),
    "tooltrail_request_seconds": (
        "histogram",
        "Duration of requests answered with 200.",
        _histogram(BUCKETS_S),
    ),
    "tooltrail_event_lag_seconds": (
        "histogram",
        "Time from the end of a call to the receipt of its event; 0 if a clock is ahead.",
        _histogram(LAGS_S),
    ),
    "tooltrail_events_ahead_total": (
        "counter",
        "Calls that ended ahead of the server's clock: one of the clocks is wrong.",
        ("",),
    ),
    "tooltrail_page_requests_total": (
        "counter",
        "Requests for pages, by class of the status.",
        tuple(f'{{status="{each}"}}' for each in _CLASSES),
    ),
    "tooltrail_page_request_seconds": (
        "histogram",
        "Duration of requests for pages, until the answer begins.",
        _histogram(BUCKETS_S),
    ),
    "tooltrail_api_requests_total": (
        "counter",
        "Requests to the API, without the intake, by class of the status.",
        tuple(f'{{status="{each}"}}' for each in _CLASSES),
    ),
    "tooltrail_api_request_seconds": (
        "histogram",
        "Duration of these requests, until the answer begins.",
        _histogram(BUCKETS_S),
    ),
    "tooltrail_stage_seconds": (
        "summary",
        "Time of requests by stage: reading, waiting, decompressing, storing.",
        tuple(f'_{what}{{stage="{stage}"}}' for stage in STAGES for what in ("sum", "count")),
    ),
}
"""Type, meaning and the suffix of each line, by metric name."""

_LINES = [name + suffix for name, (_, _, suffixes) in FAMILIES.items() for suffix in suffixes]
_AT = {line: at for at, line in enumerate(_LINES)}
_SIZE = 8 * len(_LINES)


class Counters:
    """The counters of one process, in the file `path`. Other processes may read it meanwhile."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._values = memoryview(_mapped(path)).cast("d")

    def add(self, amounts: Mapping[str, float]) -> None:
        """Add amounts by line name. Raises KeyError for an unknown line."""
        with self._lock:
            for line, amount in amounts.items():
                self._values[_AT[line]] += amount


def _mapped(path: Path) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.fstat(descriptor).st_size != _SIZE:
            # Write zeros instead of only extending the file: if the disk is full, a write to
            # mapped memory would kill the process.
            os.ftruncate(descriptor, 0)
            os.write(descriptor, bytes(_SIZE))
        return mmap.mmap(descriptor, _SIZE)
    except (OSError, ValueError):  # the disk has no room, or too little
        return mmap.mmap(-1, _SIZE)  # nobody reads these counts; a new process tries the file again
    finally:
        os.close(descriptor)


@cache
def counters() -> Counters:
    """The counters of this process."""
    return Counters(settings.METRICS_DIR / str(os.getpid()))


class Request:
    """The amounts of one request to the intake. `done` adds them to the counters."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._amounts: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """Count the time since the last lap for this stage."""
        now = time.perf_counter()
        self._amounts[f'tooltrail_stage_seconds_sum{{stage="{stage}"}}'] = now - self._last
        self._amounts[f'tooltrail_stage_seconds_count{{stage="{stage}"}}'] = 1
        self._last = now

    def signal(self, name: str) -> None:
        """Note the signal of an OTLP request."""
        self._amounts[f'tooltrail_otlp_requests_total{{signal="{name}"}}'] = 1

    def received(self, sent: int) -> None:
        """Note the bytes of a body that is not stored."""
        self._amounts["tooltrail_received_bytes_total"] = sent

    def stored(self, sent: int, inflated: int, answer: Mapping[str, Any]) -> None:
        """Note a stored request: its bytes, and the outcomes of its events from the answer."""
        self.received(sent)
        self._amounts["tooltrail_inflated_bytes_total"] = inflated
        for outcome in _OUTCOMES:
            became = answer[outcome]
            events = len(became) if isinstance(became, list) else became
            self._amounts[f'tooltrail_events_total{{outcome="{outcome}"}}'] = events

    def spans(self, counts: Mapping[str, int]) -> None:
        """Note the number of spans by outcome."""
        for outcome in _SPAN_OUTCOMES:
            self._amounts[f'tooltrail_spans_total{{outcome="{outcome}"}}'] = counts[outcome]

    def done(self, status: int) -> None:
        """Count the request, which was answered with `status`."""
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
    """Count the end events of a stored request by their age on arrival. Times in microseconds."""
    if not ended_us:
        return
    lags_s = [(received_us - each) / 1_000_000 for each in ended_us]
    by_bound = Counter(bisect_left(LAGS_S, lag) for lag in lags_s)
    so_far = 0
    amounts: dict[str, float] = {}
    for place, bound in enumerate((*LAGS_S, "+Inf")):
        so_far += by_bound[place]
        amounts[f'tooltrail_event_lag_seconds_bucket{{le="{bound}"}}'] = so_far
    amounts["tooltrail_event_lag_seconds_sum"] = sum(lag for lag in lags_s if lag > 0)
    amounts["tooltrail_event_lag_seconds_count"] = len(lags_s)
    amounts["tooltrail_events_ahead_total"] = sum(lag < 0 for lag in lags_s)
    counters().add(amounts)


def count_read(kind: str, status: int, seconds: float) -> None:
    """Count a request for a `page` or to the reading `api`."""
    name = f"tooltrail_{kind}_request_seconds"
    amounts = {f'{name}_bucket{{le="{bound}"}}': 1.0 for bound in BUCKETS_S if seconds <= bound}
    amounts[f'{name}_bucket{{le="+Inf"}}'] = 1
    amounts[f"{name}_sum"] = seconds
    amounts[f"{name}_count"] = 1
    amounts[f'tooltrail_{kind}_requests_total{{status="{status // 100}xx"}}'] = 1
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
    """All metrics in Prometheus' text format. `gauges` has meaning and current value by name."""
    return "".join(f"{line}\n" for line in _exposed(gauges))


def _exposed(gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
    yield "# HELP tooltrail_build_info Version of this server; always 1."
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
