"""Processes that stand still before a request to the archive's storage, and then go on.

Meanwhile others have taken their place. What was erased by then must stay unreadable, and what was
not erased must stay readable, wherever they stood still.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connections
from django.utils import timezone

from audit.archive.archiving import run_slice
from audit.models import Archive
from config.http.bucket import Bucket, BucketError
from config.postgresql.aliases import KEEPER
from tenants.deletion import delete_tenant
from tenants.scope import tenant_scope
from tests.support.archives import (
    archive_all,
    begin,
    bundle_of,
    make_buckets,
    read_archive,
    recoverable,
    send_two_days,
    sign_all,
    time_goes_on,
    use_buckets,
    verify,
)
from tests.support.erasures import (
    confirm_erasure,
    erase,
    preview_erasure,
    read_erasure,
    run_erasure,
)
from tests.support.factories import Cast, make_call, make_cast, send_events
from tests.support.s3.storage import s3_storage

pytestmark = [pytest.mark.slow, pytest.mark.sampled("archive in trouble", 1)]

ENDS = pytest.mark.parametrize("dies", [0, 1, 2], ids=["goes on", "dies", "dies one later"])
_WAIT_S = 120


class DiedError(BaseException):
    """The process is gone: it cleans nothing up."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_storage() as running:
        make_buckets(running, "records")
        yield running


@pytest.fixture(autouse=True)
def _storage(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_buckets(monkeypatch, endpoint, "records")


class Stall:
    """Lets something happen before the request with a number, of the thread that made this."""

    def __init__(self, at: int, happens: Callable[[], None], dies: int) -> None:
        self._at, self._happens, self._dies = at, happens, dies
        self._send = Bucket._request
        self._thread = threading.get_ident()
        self.count = 0
        self._is_inside = False

    def __call__(self, bucket: Bucket, *arguments: Any, **options: Any) -> Any:
        if self._is_inside or threading.get_ident() != self._thread:
            return self._send(bucket, *arguments, **options)
        self.count += 1
        if self.count == self._at:
            self._is_inside = True
            self._happens()
            self._is_inside = False
        answer = self._send(bucket, *arguments, **options)
        if self._at and self._dies and self.count == self._at + self._dies - 1:
            raise DiedError
        return answer

    def run(self, work: Callable[[], object]) -> int:
        """Work until the end, or until the process dies. Returns how many requests it sent."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Bucket, "_request", lambda *args, **options: self(*args, **options))
            with suppress(DiedError):
                work()
        return self.count


def at_requests(try_at: Callable[[int], int], *, is_each: bool) -> None:
    """Stand still before each request, or before two of them. `try_at(0)` never does."""
    count = try_at(0)
    assert count >= 8  # checks, lists, pack, secret, keys, record; facts with pyarrow, too
    for at in range(1, count + 1) if is_each else random.sample(range(1, count + 1), 2):
        try_at(at)


def archive_once(cast: Cast) -> None:
    run_slice(cast.tenant.id, timezone.now() + timedelta(days=4))


def end_lease(cast: Cast) -> None:
    with tenant_scope(cast.tenant.id):
        Archive.objects.for_tenant(cast.tenant.id).exclude(claim=None).update(
            claimed_until=timezone.now()
        )


@ENDS
def test_stalled_archiver_writes_nothing_readable_after_an_erasure(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: int, full: bool
) -> None:
    def try_at(at: int) -> int:
        cast = make_cast(f"stalled {at}")
        begin(cast)
        send_two_days(cast, monkeypatch)
        sign_all(cast.tenant)

        def others() -> None:
            end_lease(cast)
            assert erase(cast).state == "done"
            assert archive_all(cast).next_index > 10

        sent = Stall(at, others, dies).run(lambda: archive_once(cast))
        if not at:
            return sent
        left = recoverable(endpoint, "records", cast.tenant.id)
        assert len(left) == 8 and not any(b"swordfish" in each for each in left), at
        archive = read_archive(cast)
        assert (archive.claim, archive.failure) == (None, ""), at
        verdict = verify(bundle_of(cast.tenant.id, tmp_path / f"{at}.zip"))
        assert verdict["genuine"] and verdict["erased"] == 2, (at, verdict)
        return sent

    at_requests(try_at, is_each=full)


@ENDS
def test_stalled_archiver_harms_nothing_that_its_successor_wrote(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: int, full: bool
) -> None:
    def try_at(at: int) -> int:
        cast = make_cast(f"followed {at}")
        begin(cast)
        send_two_days(cast, monkeypatch)
        sign_all(cast.tenant)

        def others() -> None:
            end_lease(cast)
            assert archive_all(cast).next_index > 9

        sent = Stall(at, others, dies).run(lambda: archive_once(cast))
        verdict = verify(bundle_of(cast.tenant.id, tmp_path / f"{at}.zip"))
        assert verdict["genuine"] and verdict["erased"] == 0, (at, verdict)
        if at:
            assert len(recoverable(endpoint, "records", cast.tenant.id)) == 10, at
        return sent

    at_requests(try_at, is_each=full)


@ENDS
def test_stalled_archiver_writes_nothing_readable_after_its_tenant_is_gone(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, dies: int, full: bool
) -> None:
    def try_at(at: int) -> int:
        cast = make_cast(f"leaving {at}")
        begin(cast)
        send_two_days(cast, monkeypatch)
        sign_all(cast.tenant)

        def others() -> None:
            end_lease(cast)
            with time_goes_on(monkeypatch, timedelta(hours=1)):
                cast.tenant.suspended_at = timezone.now() - timedelta(minutes=1)
                delete_tenant(cast.tenant, "operator", lambda done, size: None)

        sent = Stall(at, others, dies).run(lambda: archive_once(cast))
        if at:
            assert recoverable(endpoint, "records", cast.tenant.id) == [], at
        return sent

    at_requests(try_at, is_each=full)


@ENDS
def test_stalled_erasure_that_lost_its_lock_brings_no_key_back(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: int, full: bool
) -> None:
    def try_at(at: int) -> int:
        cast = make_cast(f"erasing {at}")
        begin(cast)
        send_events(cast.tenant, make_call(case_id="his", args={"secret": "marlin"}))
        send_two_days(cast, monkeypatch)
        archive_all(cast)
        first, second = preview_erasure(cast), preview_erasure(cast, "case:his")
        confirm_erasure(cast, first.id)
        confirm_erasure(cast, second.id)

        def others() -> None:
            keeper, lost = connections[KEEPER], None
            if keeper.in_atomic_block:
                lost = keeper.connection.info.backend_pid
            other = threading.Thread(target=run_elsewhere, args=[cast, second.id, lost])
            other.start()
            other.join(_WAIT_S)

        def work() -> None:
            try:
                run_erasure(cast, first.id)
            except (DatabaseError, BucketError):  # it has lost its lock
                connections[KEEPER].close()

        sent = Stall(at, others, dies).run(work)
        connections[KEEPER].close()
        assert read_erasure(cast, second.id).state == ("done" if at else "confirmed")
        if at:
            left = recoverable(endpoint, "records", cast.tenant.id)
            assert not any(b"marlin" in each for each in left), at
        for pk in (first.id, second.id):
            run_erasure(cast, pk)
            assert read_erasure(cast, pk).state == "done", read_erasure(cast, pk).problem
        left = recoverable(endpoint, "records", cast.tenant.id)
        assert len(left) == 8, (at, left)
        archive_all(cast)
        verdict = verify(bundle_of(cast.tenant.id, tmp_path / f"{at}.zip"))
        assert verdict["genuine"] and verdict["erased"] == 4, (at, verdict)
        return sent

    at_requests(try_at, is_each=full)


def run_elsewhere(cast: Cast, pk: Any, lost: int | None) -> None:
    """Run an erasure in a thread, so with connections of its own, when another has lost its own."""
    try:
        if lost is not None:
            with connections[KEEPER].cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s::int, 5000::bigint)", [lost])
        run_erasure(cast, pk)
    finally:
        connections.close_all()
