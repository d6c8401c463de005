"""Auditors' samples as people make them: begun, listed, drawn, worked and signed on pages."""

import json
import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import uuid_utils.compat
from django.urls import reverse
from django.utils import timezone
from tooltrail.evidence import Archive, Policy, Verdict, verify
from tooltrail.evidence.sample.selection import commitment_of

from audit.events.batch_ids import BatchId
from audit.events.body import Line
from audit.evidence.bundling import bundle
from audit.ledger.actions import enter_all_actions
from audit.models import Sample, SampledCall
from audit.pages.show.sample_evidence import evidence_of
from audit.sampling import collecting
from audit.sampling.working import sampled_calls
from tenants.members import add_member
from tenants.models import Role, User
from tenants.scope import tenant_scope
from tests.support.batches import record_batch
from tests.support.factories import Cast, make_call, make_user
from tests.support.ledger_log import keep
from tests.support.ledger_log import sign as sign_ledger_of
from tests.support.pages import signed_in

_later = iter(range(1, 100_000))


def sign_ledger(cast: Cast) -> None:
    """Let the worker enter all actions and sign, at a later time than ever before."""
    enter_all_actions(cast.tenant.id)
    keep(cast.tenant, timezone.now() + timedelta(minutes=next(_later)))


def sign_now(cast: Cast) -> None:
    """The same as a worker does now: it signs, if it has not for some seconds."""
    enter_all_actions(cast.tenant.id)
    sign_ledger_of(cast.tenant)


def arrive(cast: Cast, at: datetime, calls: int) -> None:
    """Store calls as one request that arrived at this instant."""
    raws = [json.dumps(event).encode() for _ in range(calls) for event in make_call(started_at=at)]
    lines = [Line(number, raw) for number, raw in enumerate(raws, 1)]
    batch_id = BatchId(uuid_utils.compat.uuid7())
    record_batch(cast.tenant.id, b"\n".join(raws), lines, batch_id, at)


def second_auditor(cast: Cast) -> User:
    """Another auditor of the tenant."""
    user = make_user(f"second-{secrets.token_hex(4)}")
    with tenant_scope(cast.tenant.id):
        add_member(cast.tenant, user, Role.AUDITOR)
    return user


def read_sample(cast: Cast, pk: UUID) -> tuple[Sample, list[SampledCall]]:
    """A sample and its drawn calls as they are stored."""
    with tenant_scope(cast.tenant.id):
        sample = collecting.find_sample(pk)
        assert sample is not None
        return sample, sampled_calls(sample)


def post(cast: Cast, user: User, route: str, *arguments: Any, **data: Any) -> str:
    """Post a form that must be taken; returns where it leads to."""
    answer = signed_in(user).post(reverse(route, args=arguments), data)
    assert answer.status_code == 302, answer.content.decode()
    return answer.headers["Location"]


def begin_sample(cast: Cast, q: str = "", nonce: str = "", **data: Any) -> UUID:
    """Begin a sample and list its population."""
    data = {"name": "refunds", "q": q, "size": 5} | data
    if nonce:
        data["commitment"] = commitment_of(nonce)
    location = post(cast, cast.auditor, "sample_list", **data)
    pk = UUID(location.rsplit("/", 1)[1])
    while collecting.run_slice(cast.tenant.id, pk):
        pass
    return pk


def draw_sample(
    cast: Cast,
    q: str = "",
    nonce: str | None = None,
    sign: Callable[[Cast], None] = sign_ledger,
    **data: Any,
) -> UUID:
    """Begin a sample and draw its calls. Without a nonce a new one is made; '': there is none."""
    nonce = secrets.token_hex(32) if nonce is None else nonce
    pk = begin_sample(cast, q, nonce, **data)
    sign(cast)
    post(cast, cast.auditor, "sample_draw", pk, nonce=nonce)
    return pk


def conclude_all(
    cast: Cast, pk: UUID, exceptions: Callable[[int], bool] = lambda position: position == 2
) -> None:
    """Conclude about every call: an exception at some positions."""
    for call in read_sample(cast, pk)[1]:
        data = {"conclusion": "pass", "note": f"seen {call.position}", "exception": ""}
        if exceptions(call.position):
            data |= {"conclusion": "exception", "exception": "paid twice to Ada"}
        post(cast, cast.auditor, "sample_conclude", pk, call.position, **data)


def signed_sample(
    cast: Cast, q: str = "", sign: Callable[[Cast], None] = sign_ledger, **data: Any
) -> UUID:
    """A sample that the auditor and the admin have signed, in a signed ledger."""
    pk = draw_sample(cast, q, sign=sign, **data)
    conclude_all(cast, pk)
    post(cast, cast.auditor, "sample_sign", pk)
    post(cast, cast.admin, "sample_sign", pk)
    sign(cast)
    return pk


def sample_bundle(cast: Cast, pk: UUID, folder: Path, now: datetime | None = None) -> Path:
    """The evidence bundle of a sample."""
    sample, _ = read_sample(cast, pk)
    with tenant_scope(cast.tenant.id):
        wanted = evidence_of(cast.tenant, sample, "ada", now or timezone.now())
    path = folder / f"sample-{secrets.token_hex(4)}.zip"
    path.write_bytes(b"".join(bundle(wanted)))
    return path


def verified(path: Path, policy: Policy | None = None) -> Verdict:
    """The verdict on a bundle."""
    with Archive(path) as archive:
        return verify(archive, policy=policy)


def result_of(verdict: Verdict, name: str) -> str:
    """The result and message, or problems, of one check."""
    (check,) = [each for each in verdict.checks if each.name == name]
    return f"{check.result}: {check.message if not check.problems else '; '.join(check.problems)}"


def words(text: str) -> str:
    """A page's text on one line."""
    return re.sub(r"\s+", " ", text)
