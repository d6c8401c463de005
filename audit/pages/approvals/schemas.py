"""The API's responses about approvals, as the API description shows them."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from audit.pages.show.figure_schemas import Bounds
from tenants.api_reads import Answer, Page


class Approval(Answer):
    """A request for an approval with its answer, or what a person approved without a request."""

    state: Literal["awaiting", "approved", "refused", "ran"]
    """`ran`: the call ran although its request has no answer."""
    requested_at: datetime | None
    """Null for an approval without a request."""
    answered_at: datetime | None
    waited_ms: float | None
    """From the request to its answer."""
    answer: str | None
    """The decision that ended the waiting, such as `approved` or `denied`."""
    tool_name: str
    tool_version: str | None
    trace_id: str
    invocation_id: UUID
    policy_kind: str | None
    """What asked for the approval: `person`, `policy` or `guardrail`."""
    policy_id: str | None
    policy_name: str | None
    by_kind: str | None
    """Who or what answered, likewise."""
    by_id: str | None
    by_name: str | None
    requested_by: str | None
    """The person for whom the call is made."""
    is_self_approved: bool
    """Whether a person approved a call that is made for them."""
    definition_digest: str | None
    """Of the tool's definition that was shown to who answered."""


class ApprovalPage(Page[Approval], Bounds):
    """Approvals, newest first."""

    OLD_NAME = "approvals"


class Answers(Answer):
    """Answers: counts, and the time from the request to the answer."""

    answers: int
    """Approved and refused."""
    approved: int
    refused: int
    self_approved: int
    unasked: int
    """Approvals without a request. They count as approved and have no waiting time."""
    p50_ms: float | None
    p95_ms: float | None


class Decider(Answers):
    """The answers of one person, policy or guardrail."""

    kind: str | None
    id: str | None
    name: str | None


class WaitBand(Answer):
    """Requests that were answered within a band of time."""

    name: str
    requests: int


class ApprovalSummary(Bounds):
    """Figures of the approvals of a range."""

    total: Answers
    awaiting: int
    """Requests of the range that have no answer and whose calls did not run."""
    ran: int
    """Requests of the range whose calls ran without an answer."""
    waits: list[WaitBand]
    deciders: list[Decider]
    """Most answers first."""
