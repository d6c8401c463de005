"""What editors do with a tool's draft and calls: replay, look for drift, publish.

The pages and the API use these functions. All need the tenant's scope.
"""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from audit.events.judgement import UnusableSchemaError
from audit.events.outputs import Side
from audit.log.payload import LogPayloadError
from audit.models import DriftAnalysis, RegressionSet, Replay
from audit.pages.show.api_query import time_of, within
from audit.pages.show.ranges import Span
from audit.queries.call_query import Query
from audit.queries.replays import ReplayRange
from audit.queries.time_range import TimeRange
from audit.retention.holds import lock_record
from audit.tasks.requested import analyze_drift, replay_calls
from audit.work.drift import job as drift
from audit.work.drift.shape import Observed, loads
from audit.work.drift.widened import observed_schema, widened
from audit.work.regression import NoSetError, make_set
from audit.work.replay import job as replays
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant
from tenants.slices import JobState
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft, publish
from tools_registry.models import Tool, ToolDraft, ToolVersion
from tools_registry.schemas import ToolContract
from tools_registry.versions import contract_of, find_version


def begin_replay(
    tool: Tool, proposal: replays.Proposal, actor: Actor, of: TimeRange, limit: int
) -> Replay:
    """Let the worker replay the newest calls of a range. Raises UnusableSchemaError."""
    calls = ReplayRange(tool.name, of.start, of.end)
    replay = replays.start_replay(tool, proposal, calls, limit, name_of(actor))
    about = {"revision": proposal.revision} if proposal.revision else {"of": "a given definition"}
    record_action(tool.tenant, actor, "tool.replay", tool.name, **about)
    replay_calls.defer(tenant_id=str(tool.tenant_id), replay_id=str(replay.id))
    return replay


def make_regression_set(
    tenant: Tenant, tool: Tool, label: str, actor: Actor, reason: str
) -> RegressionSet:
    """Make a tool's regression set of the calls with a label. Raises NoSetError.

    The actor may see payloads. The reason is recorded.
    """
    lock_record(tenant.pk)  # erasures wait, and then clear the copies, too
    try:
        return make_set(tenant, tool, label, actor, reason, timezone.now())
    except LogPayloadError as error:
        raise NoSetError(f"A payload in the log {error}.") from error
    except UnusableSchemaError as error:
        raise NoSetError(str(error)) from error


def begin_analysis(
    tool: Tool, actor: Actor, of: TimeRange, limit: int, query: Query
) -> DriftAnalysis:
    """Analyze the newest calls of a range: few in this request, more in the worker.

    With a query, those that match it, in its times, too. Raises InvalidQueryError.
    """
    now = timezone.now()
    wanted = within(query.of_index().wanted, Span(of.start, of.end), now)
    of, among = time_of(wanted, of, now), query.without("since", "until")
    analysis = drift.start_analysis(tool, of, limit, name_of(actor), among)
    details: dict[str, Any] = {"query": among} if among else {}
    record_action(tool.tenant, actor, "tool.look-for-drift", tool.name, **details)
    if _has_more(analysis):
        analyze_drift.defer(tenant_id=str(tool.tenant_id), analysis_id=str(analysis.id))
    return analysis


def draft_what_was_observed(tool: Tool, by: Publisher) -> ToolDraft | None:
    """Create a draft that allows what the last analysis observed; None without an analysis.

    Raises DraftExistsError, and ValidationError.
    """
    analysis = drift.last_analysis(tool)
    if analysis is None or not analysis.read_count:
        return None
    version = find_version(tool, analysis.base_number) if analysis.base_number else None
    contract = _proposed(tool, version, loads(analysis.shape))
    return create_draft(tool, contract, by, base_number=analysis.base_number or 0)


def publish_draft(draft: ToolDraft, by: Publisher, *, revision: int, reason: str) -> ToolVersion:
    """Publish the reviewed revision. Raises as `tools_registry.drafts.publish`."""
    newly = newly_violating(last_replay(draft.tool), draft)
    return publish(draft, by, expected_revision=revision, newly_violating=newly, reason=reason)


def proposal_of(draft: ToolDraft) -> replays.Proposal:
    """Return the draft's schemas, against which calls are validated."""
    return replays.Proposal(draft.revision, draft.input_schema, draft.output_schema)


def last_replay(tool: Tool) -> Replay | None:
    """Return the newest replay of a draft that read anything or is not cancelled."""
    stored = Replay.objects.for_tenant(tool.tenant_id).filter(tool_id=tool.id, draft_revision__gt=0)
    return stored.exclude(state=JobState.CANCELLED, read_count=0).order_by("-id").first()


def newly_violating(replay: Replay | None, draft: ToolDraft) -> int:
    """Return how many calls newly violate by the replay; 0 if it was of another draft."""
    if replay is None or not replays.is_of(replay, draft.tool, proposal_of(draft)):
        return 0
    return replay.newly_violating_count


def _has_more(analysis: DriftAnalysis) -> bool:
    """Run the first slice if there are few calls. Return whether the worker must continue."""
    if analysis.call_count > drift.AT_ONCE:
        return True
    try:
        return drift.run_slice(analysis.tenant_id, analysis.id, seconds=drift.AT_ONCE_SECONDS)
    except LogPayloadError as error:
        drift.fail_analysis(analysis.tenant_id, analysis.id, f"A payload in the log {error}.")
        return False


def _proposed(
    tool: Tool, version: ToolVersion | None, observed: Mapping[Side, Observed]
) -> ToolContract:
    """Return a version's contract, or an empty one, widened to what was observed.

    A side without an observed value keeps its schema. Raises ValidationError.
    """
    args, output = observed["args"].shape, observed["output"].shape
    if version is None:
        return ToolContract.model_validate(
            {
                "name": tool.name,
                "description": "",
                "input_schema": observed_schema(args) or {"type": "object"},
                "output_schema": observed_schema(output) if output.seen.calls else None,
            }
        )
    members = contract_of(version).model_dump()
    members["input_schema"] = widened(version.input_schema, args)
    if version.output_schema is not None:
        members["output_schema"] = widened(version.output_schema, output)
    return ToolContract.model_validate(members)
