"""Replaying stored calls against drafts or given schemas, over the API."""

from datetime import datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path
from pydantic import AfterValidator, Field

from audit.events.judgement import UnusableSchemaError
from audit.models import Replay
from audit.pages.show.router import router
from audit.pages.tools.acts import (
    begin_replay,
    proposal_of,
)
from audit.pages.tools.wanted_calls import CallsBody, JobName
from audit.work.replay import job as replays
from audit.work.replay.tally import KindTally, Tally
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, acts
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, reads, utc
from tenants.models import Scope
from tools_registry.act_api import found_tool
from tools_registry.drafts import (
    find_draft,
)
from tools_registry.models import Tool
from tools_registry.schemas import check_schema

type Schema = Annotated[dict[str, Any], AfterValidator(check_schema)]


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
        return _replay(begin_replay(tool, proposal, act.actor, body.time_range(), body.limit))
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


def _proposal(tool: Tool, body: ReplayBody) -> replays.Proposal:
    if body.schemas is not None:
        return replays.Proposal(0, body.schemas.input_schema, body.schemas.output_schema)
    if (draft := find_draft(tool)) is None:
        raise ProblemError("not_found", "The tool has no draft.")
    return proposal_of(draft)


def _found_replay(tool: Tool, pk: UUID) -> Replay:
    stored = Replay.objects.for_tenant(tool.tenant_id).filter(tool_id=tool.pk, id=pk).first()
    if stored is None:
        raise ProblemError("not_found", "Replay not found.")
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
