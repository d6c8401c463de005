"""Replays: start, progress, cancel and findings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.events.judgement import STEPS, Broken, UnusableSchemaError
from audit.events.outputs import Side
from audit.log.payload import LogPayloadError, read_events
from audit.models import Replay
from audit.pages.tools.acts import begin_replay, proposal_of
from audit.pages.tools.forms import ReplayForm
from audit.pages.tools.skipped import skipped_reasons
from audit.queries.listed_call import ListedCall
from audit.queries.replays import sampled_calls
from audit.work.replay import job
from audit.work.replay.tally import KindTally, SideTally, Tally
from config.http.htmx import render_page
from config.http.ordering import Key, Order, in_order, requested_order
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role
from tenants.slices import UNDER_WAY, JobState, percent
from tools_registry.drafts import find_draft
from tools_registry.models import Tool, ToolDraft

KINDS_SHOWN = 50
SAMPLES_SHOWN = 20
"""Maximum of calls that are read from the log to show what is wrong with them."""
EXPLAINED_STEPS = 8 * STEPS
"""For explaining all samples of a page: 0.2 s (`tooltrail.guard.work`)."""

_SIDES: dict[Side, str] = {"output": "Outputs", "args": "Arguments"}


@dataclass(frozen=True, slots=True)
class Sample:
    """An example call, and its violations against the draft."""

    call: ListedCall
    what: str
    broken: tuple[Broken, ...]


@dataclass(frozen=True, slots=True)
class KindRow:
    """A kind of violation with its sample calls."""

    kind: KindTally
    samples: list[Sample]


@dataclass(frozen=True, slots=True)
class SideView:
    """The results for the outputs, or for the arguments."""

    side: Side
    name: str
    tally: SideTally
    skipped: list[tuple[str, int]]
    rows: list[KindRow]
    order: Order
    is_cut: bool


_KINDS: Mapping[str, Key[KindTally]] = {
    **{name: attrgetter(name) for name in ("path", "code", "new", "gone", "still", "cured")}
}
"""The columns by which kinds are sorted; at first by all figures, the new ones first."""


@require_POST
@tenant_page(role=Role.EDITOR)
def replay_start(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Replay the newest calls of a range against the tool's current draft."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    draft = find_draft(tool)
    form = ReplayForm(request.POST, now=timezone.now(), zone=timezone.get_current_timezone())
    if draft is None:
        messages.error(request, "Nothing was replayed: the tool has no draft.")
        return redirect("draft_review", tool.pk)
    if not form.is_valid():
        problems = " ".join(str(text) for texts in form.errors.values() for text in texts)
        messages.error(request, f"Nothing was replayed. {problems}")
        return redirect("draft_review", tool.pk)
    try:
        replay = begin_replay(
            tool, proposal_of(draft), request.user, form.wanted, form.cleaned_data["limit"]
        )
    except UnusableSchemaError as error:
        messages.error(request, f"Nothing was replayed: {error}")
        return redirect("draft_review", tool.pk)
    return redirect("replay_detail", tool.pk, replay.id)


@require_safe
@tenant_page()
def replay_detail(request: TenantRequest, pk: UUID, replay_id: UUID) -> HttpResponse:
    """Show the progress of a replay and its findings so far."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    replay = _replay_or_404(tool, replay_id)
    context = {"tool": tool, **replay_context(request, replay, tool, find_draft(tool))}
    return render_page(request, "tools/replay_detail.html", "replay", context)


@require_POST
@tenant_page(role=Role.EDITOR)
def replay_cancel(request: TenantRequest, pk: UUID, replay_id: UUID) -> HttpResponseBase:
    """Cancel a replay. Its findings stay."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    job.cancel_replay(tool.id, _replay_or_404(tool, replay_id).id, timezone.now())
    return redirect("replay_detail", tool.pk, replay_id)


def replay_context(
    request: TenantRequest,
    replay: Replay,
    tool: Tool,
    draft: ToolDraft | None,
    *,
    page: str = "",
) -> dict[str, Any]:
    """Return the context of a replay. The log is read only for samples, after the replay ended.

    `page` is the path of the page it is on if the request may have another one.
    """
    is_under_way = replay.state in UNDER_WAY
    sees_payloads = request.membership.sees_payloads
    sides = _sides(request, replay, page, with_words=sees_payloads and not is_under_way)
    return {
        "replay": replay,
        "is_under_way": is_under_way,
        "state": JobState(replay.state).label,
        "percent": percent(replay.read_count, replay.call_count or 0),
        "is_of_draft": draft is not None and job.is_of(replay, tool, proposal_of(draft)),
        "has_draft": draft is not None,
        "may_edit": has_role(request.membership, Role.EDITOR),
        "sides": sides,
        "regression": _regression(replay),
        "has_judged": any(side.tally.judged for side in sides),
        "is_withheld": not sees_payloads,
    }


def _regression(replay: Replay) -> dict[str, Any] | None:
    """Return what the replay says of the tool's regression set, with the calls that differ."""
    regression = Tally.load(replay.findings).regression
    if regression is None:
        return None
    differences = regression["differences"]
    calls = sampled_calls(
        [(date.fromisoformat(one["started_on"]), UUID(one["invocation_id"])) for one in differences]
    )
    return regression | {
        "differences": [
            one | {"call": calls.get(UUID(one["invocation_id"])), "side": _SIDES[one["side"]]}
            for one in differences
        ]
    }


def _replay_or_404(tool: Tool, replay_id: UUID) -> Replay:
    replays = Replay.objects.for_tenant(tool.tenant_id).filter(tool_id=tool.id)
    replay = replays.filter(id=replay_id).first()
    if replay is None:
        raise Http404("no such replay")
    return replay


def _sides(
    request: TenantRequest, replay: Replay, page: str, *, with_words: bool
) -> list[SideView]:
    tallies = Tally.load(replay.findings).sides
    orders = {
        side: requested_order(request, _KINDS, "", f"sort-{side}", page=page) for side in tallies
    }
    shown = {
        side: in_order(sorted(tally.kinds, key=_weight, reverse=True), _KINDS, orders[side])[
            :KINDS_SHOWN
        ]
        for side, tally in tallies.items()
    }
    calls = sampled_calls([place for kinds in shown.values() for place in _places(kinds)])
    words = _words(replay, shown, calls) if with_words else {}
    return [
        SideView(
            side=side,
            name=_SIDES[side],
            tally=tally,
            skipped=skipped_reasons(tally.skipped),
            order=orders[side],
            rows=[KindRow(kind, _samples(side, kind, calls, words)) for kind in shown[side]],
            is_cut=tally.further > 0 or len(tally.kinds) > KINDS_SHOWN,
        )
        for side, tally in tallies.items()
    ]


_weight = attrgetter("new", "gone", "still", "known")


def _places(kinds: list[KindTally]) -> Iterator[tuple[date, UUID]]:
    for kind in kinds:
        for samples in kind.samples.values():
            yield from ((date.fromisoformat(day), UUID(pk)) for day, pk in samples)


def _samples(
    side: Side,
    kind: KindTally,
    calls: Mapping[UUID, ListedCall],
    words: Mapping[tuple[Side, UUID], list[Broken]],
) -> list[Sample]:
    samples: dict[UUID, Sample] = {}
    for what, name in (("new", "new violation"), ("gone", "newly passing"), ("cured", "cured")):
        for _, pk in kind.samples.get(what, ()):
            call = calls.get(UUID(pk))
            if call is not None and call.invocation_id not in samples:
                about = words.get((side, call.invocation_id), ())
                broken = tuple(one for one in about if one.kind == (kind.path, kind.code))
                samples[call.invocation_id] = Sample(call, name, broken[:3])
    return list(samples.values())


def _words(
    replay: Replay, shown: Mapping[Side, list[KindTally]], calls: Mapping[UUID, ListedCall]
) -> dict[tuple[Side, UUID], list[Broken]]:
    """Return the first samples' violations against the draft, as a guard would report them."""
    places: dict[tuple[UUID, int], tuple[Side, UUID]] = {}
    for side, kinds in shown.items():
        ids = dict.fromkeys(UUID(pk) for kind in kinds for _, pk in kind.samples.get("new", ()))
        for pk in list(ids)[:SAMPLES_SHOWN]:
            call = calls.get(pk)
            place = None if call is None else call.place_of(side)
            if place is not None:
                places[place] = (side, pk)
    try:
        judges = dict(zip(("output", "args"), job.judges_of(replay), strict=True))
        events = read_events(replay.tenant_id, places)
    except (LogPayloadError, UnusableSchemaError):
        return {}
    steps = min(STEPS, EXPLAINED_STEPS // max(1, len(events)))
    return {
        places[place]: judges[places[place][0]].explain(event.raw, steps)
        for place, event in events.items()
    }
