"""Streams over the API: as on their pages, without ever showing a secret."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.ledger.status import LedgerStatus, ledger_status
from audit.models import Stream, StreamFormat, StreamOf, StreamWay
from audit.pages.show.reveal import RevealBody
from audit.pages.show.router import router
from audit.stream import streams
from audit.stream.addressing import CA_MAX, KEY_MAX, MEMBERS, TEXT_MAX, StreamError
from audit.stream.lag import lag_of
from audit.stream.streams import Wanted
from config.boxes import BoxError
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, invalid
from tenants.api_reads import Answer, ListParams, Page, paged, reads, utc
from tenants.models import Scope
from tenants.scope import current_tenant_id

type _Way = Literal["syslog", "https", "splunk", "s3"]
_Text = Annotated[Stripped, Field(max_length=TEXT_MAX)]
_COMMON = frozenset(("of", "format", "way", "has_proofs", "from_index"))


class StreamTrial(Answer):
    """The last test record."""

    asked_at: datetime
    at: datetime | None
    """When the receiver answered; null: not yet."""
    is_taken: bool | None
    answer: str | None


class OneStream(Answer):
    """A stream and its state, without its secrets."""

    id: UUID
    name: str
    of: Literal["calls", "actions"]
    format: Literal["ocsf", "ecs"]
    way: _Way
    settings: dict[str, Any]
    has_secret: bool
    """Whether a token, a key or a header is stored."""
    has_proofs: bool
    """Whether each record has its whole proof, or only names the checkpoint."""
    payloads_by: str | None
    """Who allowed that payloads leave; null: none leave."""
    payloads_reason: str | None
    state: Literal["current", "behind", "failing", "paused"]
    next_index: int
    """The cursor: the receiver has acknowledged all entries of the ledger before it."""
    behind_entries: int
    """Entries of the ledger behind the cursor, if any is for this stream."""
    behind_seconds: int
    """How long the oldest of them waits."""
    sent_count: int
    sent_at: datetime | None
    failure: str | None
    """Why the last attempt failed."""
    failing_since: datetime | None
    next_attempt_at: datetime | None
    """If it fails: when it is tried again."""
    paused_at: datetime | None
    paused_by: str | None
    last_test: StreamTrial | None
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str


class StreamList(Page[OneStream]):
    """All streams of the tenant, by name."""


class StreamBody(Body):
    """What a stream of a way needs. Secrets that are left out stay as they are."""

    way: _Way
    """It cannot be changed, as `of`: create another stream."""
    of: Literal["calls", "actions"] = "calls"
    """What executors sent, or what the server itself recorded."""
    format: Literal["ocsf", "ecs"] = "ocsf"
    has_proofs: bool = True
    from_index: int | None = Field(None, ge=0, le=2**62)
    """Where a new stream begins; null: with what arrives from now on."""
    host: _Text = ""
    """Of a syslog server."""
    port: int = Field(6514, ge=1, le=65_535)
    certificate: str = Field("", max_length=CA_MAX)
    """That is shown to a syslog server, in PEM."""
    key: str = Field("", max_length=KEY_MAX)
    """The private key of `certificate`, in PEM without a passphrase."""
    url: _Text = ""
    """Of `https`, and of Splunk's collector without a path."""
    authorization: _Text = ""
    """The header's value, for `https`."""
    token: _Text = ""
    index: _Text = ""
    """Of Splunk; empty: the token's default."""
    has_acks: bool = False
    """Whether Splunk's indexer acknowledges."""
    endpoint: _Text = ""
    region: _Text = ""
    bucket: _Text = ""
    folder: _Text = ""
    access_key: _Text = ""
    secret_key: _Text = ""
    ca: str = Field("", max_length=CA_MAX)
    """Certificates in PEM that are trusted beside those of the system."""


class ReplayBody(Body):
    """From where a stream is sent again."""

    index: int = Field(ge=0, le=2**62)
    """An index of the ledger, up to the cursor."""


@reads(
    router,
    "/streams",
    StreamList,
    tag="streams",
    scope=Scope.ADMIN,
    problems=("cursor", "limit"),
)
def list_streams(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the streams to SIEMs, and how each stands."""
    shown, after = paged("streams", streams.all_streams(), params, lambda stream: stream.name)
    status = ledger_status(current_tenant_id())
    return {"items": [_stream(one, status) for one in shown], "next": after}


@reads(
    router,
    "/streams/{name}",
    OneStream,
    tag="streams",
    scope=Scope.ADMIN,
    problems=("not_found",),
)
def read_stream(request: HttpRequest, name: Path[str]) -> dict[str, Any]:
    """Get a stream by its name or its id: its cursor, what waits, its last failure."""
    return _stream(_stream_of(name))


@acts(
    router,
    "PUT",
    "/streams/{name}",
    OneStream,
    scope=Scope.ADMIN,
    tag="streams",
    body=StreamBody,
    problems=("not_found", "conflict"),
)
def save_stream(act: Act, name: Path[str]) -> dict[str, Any]:
    """Create the stream of this name, or replace its settings. Sending it again changes nothing.

    An id instead of a name changes that stream. Payloads that leave for one address do not leave
    for another: they are off after a change of the address.
    """
    stored = streams.find_named(name)
    if stored is None and streams.id_in(name) is not None:
        raise ProblemError("not_found", "Stream not found.")
    body = act.read(StreamBody)
    wanted = Wanted(
        name if stored is None else stored.name,
        StreamOf(body.of),
        StreamFormat(body.format),
        StreamWay(body.way),
        _given(body),
        body.has_proofs,
    )
    try:
        if stored is None:
            stored = streams.create_stream(
                act.tenant, act.actor, wanted, from_index=body.from_index
            )
        elif (stored.way, stored.of) != (body.way, body.of):
            raise ProblemError("conflict", f"The stream is of {stored.of}, by {stored.way}.")
        else:
            streams.change_stream(act.tenant, act.actor, stored, wanted)
    except StreamError as error:
        raise invalid(error.field, str(error)) from error
    except BoxError as error:
        raise ProblemError("conflict", str(error)) from error
    return _stream(stored)


@acts(
    router,
    "DELETE",
    "/streams/{name}",
    OneStream,
    scope=Scope.ADMIN,
    tag="streams",
    problems=("not_found",),
)
def remove_stream(act: Act, name: Path[str]) -> dict[str, Any]:
    """Delete a stream with its cursor, and return it."""
    stored = _stream_of(name)
    streams.delete_stream(act.tenant, act.actor, stored)
    return _stream(stored)


@acts(
    router,
    "POST",
    "/streams/{name}/test",
    OneStream,
    scope=Scope.ADMIN,
    tag="streams",
    problems=("not_found",),
)
def send_stream_test(act: Act, name: Path[str]) -> dict[str, Any]:
    """Send a test record. `last_test` of the stream has the answer in some seconds."""
    stored = _stream_of(name)
    streams.ask_test(act.tenant, act.actor, stored)
    return _stream(stored)


@acts(
    router,
    "POST",
    "/streams/{name}/pause",
    OneStream,
    scope=Scope.ADMIN,
    tag="streams",
    problems=("not_found",),
)
def pause_stream(act: Act, name: Path[str]) -> dict[str, Any]:
    """Stop sending. What arrives waits in the ledger."""
    stored = _stream_of(name)
    streams.pause_stream(act.tenant, act.actor, stored)
    return _stream(stored)


@acts(
    router,
    "POST",
    "/streams/{name}/resume",
    OneStream,
    scope=Scope.ADMIN,
    tag="streams",
    problems=("not_found",),
)
def resume_stream(act: Act, name: Path[str]) -> dict[str, Any]:
    """Go on from the cursor, at once, whether it was paused or failed."""
    stored = _stream_of(name)
    streams.resume_stream(act.tenant, act.actor, stored)
    return _stream(stored)


@acts(
    router,
    "POST",
    "/streams/{name}/replay",
    OneStream,
    scope=Scope.ADMIN,
    tag="streams",
    body=ReplayBody,
    problems=("not_found",),
)
def replay_stream(act: Act, name: Path[str]) -> dict[str, Any]:
    """Move the cursor back to an index: all entries from there are sent again."""
    stored = _stream_of(name)
    body = act.read(ReplayBody)
    try:
        streams.replay_stream(act.tenant, act.actor, stored, body.index)
    except StreamError as error:
        raise invalid(error.field, str(error)) from error
    return _stream(stored)


@acts(
    router,
    "POST",
    "/streams/{name}/payloads",
    OneStream,
    scope=Scope.REVEAL,
    tag="streams",
    body=RevealBody,
    problems=("not_found", "needs_person"),
)
def allow_stream_payloads(act: Act, name: Path[str]) -> dict[str, Any]:
    """Let payloads leave with a stream. The ledger keeps the reason; no erasure reaches them."""
    stored = _stream_of(name)
    act.refuse_program()
    streams.allow_payloads(act.tenant, act.actor, stored, act.read(RevealBody).reason)
    return _stream(stored)


@acts(
    router,
    "DELETE",
    "/streams/{name}/payloads",
    OneStream,
    scope=Scope.REVEAL,
    tag="streams",
    problems=("not_found",),
)
def stop_stream_payloads(act: Act, name: Path[str]) -> dict[str, Any]:
    """Keep payloads here from now on."""
    stored = _stream_of(name)
    streams.stop_payloads(act.tenant, act.actor, stored)
    return _stream(stored)


def _stream_of(name: str) -> Stream:
    stored = streams.find_named(name)
    if stored is None:
        raise ProblemError("not_found", "Stream not found.")
    return stored


def _given(body: StreamBody) -> dict[str, Any]:
    """The settings for a way. Raises ProblemError for members of another way."""
    members = MEMBERS[body.way]
    if others := sorted(body.model_fields_set - members - _COMMON):
        raise invalid(others[0], f"A stream by {body.way} has none.")
    return body.model_dump(include=set(members))


def _stream(stored: Stream, status: LedgerStatus | None = None) -> dict[str, Any]:
    now = timezone.now()
    lag = lag_of(stored, status or ledger_status(stored.tenant_id), now)
    tested = stored.last_test
    names = ("id", "name", "has_proofs", "payloads_by", "payloads_reason", "next_index")
    texts = ("of", "format", "way")
    instants = ("sent_at", "failing_since", "paused_at", "created_at", "changed_at")
    return {
        **{name: getattr(stored, name) for name in (*names, "sent_count", "paused_by")},
        **{name: str(getattr(stored, name)) for name in texts},
        **{name: _utc(getattr(stored, name)) for name in instants},
        "created_by": stored.created_by,
        "changed_by": stored.changed_by,
        "settings": dict(stored.settings),
        "has_secret": stored.secret_box is not None,
        "state": lag.state,
        "behind_entries": lag.entries,
        "behind_seconds": lag.seconds(now),
        "failure": stored.failure or None,
        "next_attempt_at": utc(stored.next_attempt_at) if stored.failure else None,
        "last_test": tested
        and {name: tested.get(name) for name in ("asked_at", "at", "is_taken", "answer")},
    }


def _utc(instant: datetime | None) -> datetime | None:
    return None if instant is None else utc(instant)
