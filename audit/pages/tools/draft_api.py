"""Publishing drafts, replaying calls against them, and starting drift analyses, over the API."""

from datetime import datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path
from pydantic import AfterValidator, Field, ValidationError

from audit.events.judgement import UnusableSchemaError
from audit.models import DriftAnalysis, Replay
from audit.pages.show.api_query import checked
from audit.pages.show.ranges import RangeParams
from audit.pages.show.router import router
from audit.pages.tools.acts import (
    begin_analysis,
    begin_replay,
    draft_what_was_observed,
    proposal_of,
    publish_draft,
)
from audit.queries.call_query import Reader, parse
from audit.queries.time_range import TimeRange
from audit.work.drift import job as drift
from audit.work.replay import job as replays
from audit.work.replay.tally import KindTally, Tally
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, invalid
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, reads, utc
from tenants.models import Scope
from tools_registry.act_api import VersionState, found_tool, publisher, version_state
from tools_registry.changes import REASON_MAX_LENGTH
from tools_registry.draft_api import Draft, draft_document
from tools_registry.drafts import (
    DraftExistsError,
    ReasonNeededError,
    StaleDraftError,
    find_draft,
)
from tools_registry.models import Tool
from tools_registry.schemas import check_schema, explain
from tools_registry.versions import AlreadyPublishedError

type Schema = Annotated[dict[str, Any], AfterValidator(check_schema)]
JobName = Literal["waiting", "running", "done", "cancelled", "failed"]


class PublishBody(Body):
    """Which revision of the draft is published, and why."""

    revision: int = Field(ge=1)
    """The revision that was reviewed. If the draft was saved since, nothing is published."""
    reason: Stripped = Field("", max_length=REASON_MAX_LENGTH)
    """Needed if the draft is known to break something."""


class CallsBody(Body):
    """Which calls are read: the newest of a range."""

    limit: int = Field(10_000, ge=1, le=replays.CALLS_MAX)
    range: str = Field("", examples=["24h"])
    """How far back from now: minutes, hours or days, up to 400 days. Default: 7d."""
    from_: str = Field("", alias="from", examples=["2026-11-20T10:00:00Z"])
    """Instead of `range`: the start, an instant or a day."""
    to: str = ""
    """With `from`: the end, an instant or a day, inclusive. Default: now."""


class DriftBody(CallsBody):
    """Which calls are analyzed: the newest of a range, all or those that match a query."""

    q: str = Field("", examples=["agent:planner environment:live"])
    """As in the list of calls, without terms on payloads. Free text is not searched in messages."""


class GivenSchemas(Body):
    """The schemas of a definition that the registry does not have."""

    input_schema: Schema
    output_schema: Schema | None
    """Null: outputs are not validated."""


class ReplayBody(CallsBody):
    """Which calls are validated against what."""

    schemas: GivenSchemas | None = None
    """Default: those of the tool's draft. `POST registry/compare` answers a definition's."""


class ReplayedSide(Answer):
    """The arguments of calls, or their outputs: what the replay found so far."""

    side: Literal["args", "output"]
    judged: int
    """Calls that were validated."""
    newly_violating: int
    """Of these, calls that violate the new schema and not that of the current version."""
    newly_passing: int
    """The reverse."""
    skipped: dict[str, int]
    """Calls that could not be validated, by reason."""


class ReplayedKind(Answer):
    """A kind of violation, and in how many calls the replay found it."""

    side: Literal["args", "output"]
    path: str
    code: str
    new: int
    """Calls with it under the draft, and not under the current version."""
    gone: int
    """Calls with it under the current version, and not under the draft."""
    still: int
    known: int
    """Calls whose executor recorded it."""
    samples: list[UUID]
    """Ids of some calls where it is new."""


class RegressionDifference(Answer):
    """A case of the regression set whose verdict is not the expected one."""

    invocation_id: UUID
    side: Literal["args", "output"]
    new: list[list[str]]
    """Violations that are not expected: path and code of each."""
    gone: list[list[str]]
    """Expected violations that it does not have."""


class ReplayedRegressions(Answer):
    """The tool's regression set, judged by the new schemas."""

    number: int
    """Of the set's version."""
    as_expected: int
    differing: int
    not_judged: int
    """Cases whose copies are erased, or that take too long."""
    differences: list[RegressionDifference]
    """The first 50."""


class ReplayDetail(Answer):
    """A replay: stored calls validated against a draft, or against given schemas."""

    id: UUID
    state: JobName
    draft_revision: int
    """0: of given schemas."""
    against_version: int | None
    created_at: datetime
    created_by: str
    from_: datetime = Field(alias="from")
    to: datetime
    calls: int
    """Calls that were read so far."""
    of: int | None
    """Calls to read; null until they are counted."""
    newly_violating: int
    """Calls that violate the draft and not the current version. A gate in CI asks for 0."""
    sides: list[ReplayedSide]
    kinds: list[ReplayedKind]
    regression: ReplayedRegressions | None
    """When the replay is done; null: the tool has no regression set."""
    problem: str
    finished_at: datetime | None


class Analysis(Answer):
    """A drift analysis. `/tools/{tool_id}/drift` has the findings of the last one."""

    id: UUID
    state: JobName
    against_version: int | None
    from_: datetime = Field(alias="from")
    to: datetime
    query: str | None
    """Which calls, without times; null: all calls of the tool."""
    calls: int
    of: int
    problem: str


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/draft/publish",
    VersionState,
    scope=Scope.REGISTRY,
    tag="tools",
    body=PublishBody,
    status=201,
    problems=("not_found", "conflict"),
)
def publish_the_draft(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Publish the draft as the tool's next and current version, if it is the reviewed revision.

    A draft that is known to break something, by its schemas or by the last replay, needs a reason.
    """
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(PublishBody)
    if (draft := find_draft(tool)) is None:
        raise ProblemError("not_found", "The tool has no draft.")
    try:
        version = publish_draft(draft, publisher(act), revision=body.revision, reason=body.reason)
    except ReasonNeededError as error:
        raise invalid("reason", str(error)) from error
    except (StaleDraftError, AlreadyPublishedError) as error:
        raise ProblemError("conflict", str(error)) from error
    return version_state(version)


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/replays",
    ReplayDetail,
    scope=Scope.REGISTRY,
    tag="tools",
    body=ReplayBody,
    status=201,
    problems=("not_found", "range", "conflict"),
)
def start_replay(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Validate stored calls against the tool's draft or given schemas, in the background."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(ReplayBody)
    proposal = _proposal(tool, body)
    try:
        return _replay(begin_replay(tool, proposal, act.actor, _range(body), body.limit))
    except UnusableSchemaError as error:
        raise ProblemError("conflict", f"Nothing was replayed: {error}") from error


@reads(
    router,
    "/tools/{uuid:tool_id}/replays/{uuid:replay_id}",
    ReplayDetail,
    tag="tools",
    problems=("not_found",),
)
def read_replay(request: HttpRequest, tool_id: Path[UUID], replay_id: Path[UUID]) -> dict[str, Any]:
    """Get the progress of a replay and its findings so far. They contain no values."""
    tool = found_tool(cast(ApiRequest, request).auth.tenant_id, tool_id)
    return _replay(_found_replay(tool, replay_id))


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/replays/{uuid:replay_id}/cancel",
    ReplayDetail,
    scope=Scope.REGISTRY,
    tag="tools",
    problems=("not_found",),
)
def cancel_replay(act: Act, tool_id: Path[UUID], replay_id: Path[UUID]) -> dict[str, Any]:
    """Cancel a replay. Its findings stay."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    _found_replay(tool, replay_id)
    replays.cancel_replay(tool.pk, replay_id, timezone.now())
    return _replay(_found_replay(tool, replay_id))


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/drift",
    Analysis,
    scope=Scope.REGISTRY,
    tag="tools",
    body=DriftBody,
    status=201,
    problems=("not_found", "range", "query"),
)
def start_drift_analysis(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Compare stored calls with the tool's contract: few at once, more in the background."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(DriftBody)
    query = checked(parse(body.q, Reader(sees_payloads=True)).of_index())
    started = begin_analysis(tool, act.actor, _range(body), body.limit, query)
    return _analysis(_found_analysis(tool, started.id))


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/drift/{uuid:analysis_id}/cancel",
    Analysis,
    scope=Scope.REGISTRY,
    tag="tools",
    problems=("not_found",),
)
def cancel_drift_analysis(act: Act, tool_id: Path[UUID], analysis_id: Path[UUID]) -> dict[str, Any]:
    """Cancel an analysis. Its findings stay."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    _found_analysis(tool, analysis_id)
    drift.cancel_analysis(tool.pk, analysis_id, timezone.now())
    return _analysis(_found_analysis(tool, analysis_id))


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/drift/draft",
    Draft,
    scope=Scope.REGISTRY,
    tag="tools",
    status=201,
    problems=("not_found", "conflict"),
)
def draft_from_drift(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Create a draft that allows what the last analysis observed."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    try:
        draft = draft_what_was_observed(tool, publisher(act))
    except DraftExistsError as error:
        raise ProblemError("conflict", str(error)) from error
    except ValidationError as error:
        raise ProblemError("conflict", f"No draft created: {explain(error)}") from error
    if draft is None:
        raise ProblemError("conflict", "No calls of this tool were analyzed yet.")
    return draft_document(draft)


def _proposal(tool: Tool, body: ReplayBody) -> replays.Proposal:
    if body.schemas is not None:
        return replays.Proposal(0, body.schemas.input_schema, body.schemas.output_schema)
    if (draft := find_draft(tool)) is None:
        raise ProblemError("not_found", "The tool has no draft.")
    return proposal_of(draft)


def _range(body: CallsBody) -> TimeRange:
    length = body.range or ("" if body.from_ or body.to else "7d")
    params = {"range": length, "from": body.from_, "to": body.to}
    return RangeParams.model_validate(params).read_range()


def _found_replay(tool: Tool, pk: UUID) -> Replay:
    stored = Replay.objects.for_tenant(tool.tenant_id).filter(tool_id=tool.pk, id=pk).first()
    if stored is None:
        raise ProblemError("not_found", "Replay not found.")
    return stored


def _found_analysis(tool: Tool, pk: UUID) -> DriftAnalysis:
    analyses = DriftAnalysis.objects.for_tenant(tool.tenant_id)
    stored = analyses.filter(tool_id=tool.pk, id=pk).first()
    if stored is None:
        raise ProblemError("not_found", "Analysis not found.")
    return stored


def _replay(one: Replay) -> dict[str, Any]:
    tally_of_all = Tally.load(one.findings)
    tallies = tally_of_all.sides
    return {
        "id": one.id,
        "state": one.state,
        "draft_revision": one.draft_revision,
        "against_version": one.base_number,
        "created_at": utc(one.created_at),
        "created_by": one.created_by,
        "from": utc(one.since),
        "to": utc(one.until),
        "calls": one.read_count,
        "of": one.call_count,
        "newly_violating": one.newly_violating_count,
        "sides": [
            {
                "side": side,
                "judged": tally.judged,
                "newly_violating": tally.newly_violating,
                "newly_passing": tally.newly_passing,
                "skipped": tally.skipped,
            }
            for side, tally in tallies.items()
        ],
        "kinds": [_kind(side, kind) for side, tally in tallies.items() for kind in tally.kinds],
        "regression": tally_of_all.regression and _regression(tally_of_all.regression),
        "problem": one.problem,
        "finished_at": one.finished_at and utc(one.finished_at),
    }


def _regression(one: dict[str, Any]) -> dict[str, Any]:
    def shown(kinds: list[list[str]]) -> list[list[str]]:
        return [[text.encode(errors="replace").decode() for text in kind] for kind in kinds]

    return {
        **{name: one[name] for name in ("number", "as_expected", "differing", "not_judged")},
        "differences": [
            {
                "invocation_id": each["invocation_id"],
                "side": each["side"],
                "new": shown(each["new"]),
                "gone": shown(each["gone"]),
            }
            for each in one["differences"]
        ],
    }


def _kind(side: str, one: KindTally) -> dict[str, Any]:
    return {
        "side": side,
        "path": one.path.encode(errors="replace").decode(),
        "code": one.code,
        "new": one.new,
        "gone": one.gone,
        "still": one.still,
        "known": one.known,
        "samples": [pk for _, pk in one.samples.get("new", ())],
    }


def _analysis(one: DriftAnalysis) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "against_version": one.base_number,
        "from": utc(one.since),
        "to": utc(one.until),
        "query": one.query or None,
        "calls": one.read_count,
        "of": one.call_count,
        "problem": one.problem,
    }
