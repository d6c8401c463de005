"""Publishing drafts, and drafts of what was observed, over the API."""

from typing import Any
from uuid import UUID

from ninja import Path
from pydantic import Field, ValidationError

from audit.pages.show.router import router
from audit.pages.tools.acts import (
    draft_what_was_observed,
    publish_draft,
)
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, invalid
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
from tools_registry.schemas import explain
from tools_registry.versions import AlreadyPublishedError


class PublishBody(Body):
    """Which revision of the draft is published, and why."""

    revision: int = Field(ge=1)
    """The revision that was reviewed. If the draft was saved since, nothing is published."""
    reason: Stripped = Field("", max_length=REASON_MAX_LENGTH)
    """Needed if the draft is known to break something."""


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
