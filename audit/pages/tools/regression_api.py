"""Regression sets over the API: read, make of a label, remove. No payload is in an answer."""

from datetime import date, datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path
from pydantic import Field

from audit.models import RegressionCase, RegressionSet
from audit.pages.show.router import router
from audit.pages.tools.acts import make_regression_set
from audit.pages.tools.regression import LABEL, REASON_MAX
from audit.work.notes import LABEL_MAX
from audit.work.regression import Expected, NoSetError, cases_of, remove_set, sets_of
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, reads, utc
from tenants.models import Scope
from tools_registry.act_api import found_tool
from tools_registry.models import Tool

type Reason = Annotated[Stripped, Field(min_length=3, max_length=REASON_MAX)]


class ExpectedViolation(Answer):
    """A violation that a case is expected to have."""

    side: Literal["args", "output"]
    path: str
    code: str


class RegressionCaseDetail(Answer):
    """A call of the set, and the verdict that is expected of its copy."""

    started_on: date
    invocation_id: UUID
    is_erased: bool
    """Whether an erasure cleared the copy."""
    judged: list[Literal["args", "output"]]
    """The sides that are judged."""
    violations: list[ExpectedViolation]
    """Without any, it is expected to pass."""


class SetVersion(Answer):
    """A version of a set."""

    number: int
    label: str
    """Of the calls that it was made of; empty: the set was removed."""
    judged_by: int
    """The version of the tool by which verdicts are expected."""
    case_count: int
    created_at: datetime
    created_by: str
    reason: str


class RegressionSetDetail(Answer):
    """A tool's regression set: the newest version with its cases, and the versions before."""

    versions: list[SetVersion]
    """The newest first. Empty: nobody has made one."""
    cases: list[RegressionCaseDetail]
    """Of the newest version."""


class SetBody(Body):
    """Of which calls the set is made, and why."""

    label: str = Field(min_length=1, max_length=LABEL_MAX, pattern=LABEL, examples=["regression"])
    """Of notes about calls."""
    reason: Reason
    """Recorded: payloads are copied."""


class SetRemoval(Body):
    """Why a set is removed."""

    reason: Reason


@reads(
    router,
    "/tools/{uuid:tool_id}/regression-set",
    RegressionSetDetail,
    tag="tools",
    problems=("not_found",),
)
def read_regression_set(request: HttpRequest, tool_id: Path[UUID]) -> dict[str, Any]:
    """Get a tool's regression set. It has no payloads."""
    return _detail(found_tool(cast(ApiRequest, request).auth.tenant_id, tool_id))


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/regression-set",
    RegressionSetDetail,
    scope=Scope.PAYLOADS,
    tag="tools",
    body=SetBody,
    status=201,
    problems=("not_found", "conflict"),
)
def make_a_regression_set(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Make a tool's regression set of the calls with a label, in place of the last version.

    Their arguments and outputs are copied, so the key needs the scopes `payloads` and `registry`.
    """
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(SetBody)
    _need_registry(act)
    try:
        make_regression_set(act.tenant, tool, body.label, act.actor, body.reason)
    except NoSetError as error:
        raise ProblemError("conflict", str(error)) from error
    return _detail(tool)


@acts(
    router,
    "POST",
    "/tools/{uuid:tool_id}/regression-set/remove",
    RegressionSetDetail,
    scope=Scope.REGISTRY,
    tag="tools",
    body=SetRemoval,
    problems=("not_found", "conflict"),
)
def remove_the_regression_set(act: Act, tool_id: Path[UUID]) -> dict[str, Any]:
    """Delete the copies of a tool's regression set. Its versions stay on record."""
    tool = found_tool(act.identity.tenant_id, tool_id)
    body = act.read(SetRemoval)
    if not remove_set(act.tenant, tool, act.actor, body.reason, timezone.now()):
        raise ProblemError("conflict", "The tool has no regression set.")
    return _detail(tool)


def _need_registry(act: Act) -> None:
    if Scope.REGISTRY not in act.key.scopes:
        raise ProblemError("missing_scope", "This API key lacks the scope registry.")


def _detail(tool: Tool) -> dict[str, Any]:
    sets = sets_of(tool)
    return {
        "versions": [_version(one) for one in sets],
        "cases": [_case(one) for one in cases_of(sets[0] if sets else None)],
    }


def _version(one: RegressionSet) -> dict[str, Any]:
    named = ("number", "label", "judged_by", "case_count", "created_by", "reason")
    return {**{name: getattr(one, name) for name in named}, "created_at": utc(one.created_at)}


def _case(one: RegressionCase) -> dict[str, Any]:
    sides = Expected.of(one).sides
    return {
        "started_on": one.started_on,
        "invocation_id": one.invocation_id,
        "is_erased": one.is_erased,
        "judged": list(sides),
        "violations": [
            {"side": side, "path": kind.path.encode(errors="replace").decode(), "code": kind.code}
            for side, kinds in sides.items()
            for kind in sorted(kinds)
        ],
    }
