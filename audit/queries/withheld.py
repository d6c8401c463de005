"""Hides payloads from members who may not see them (docs/adr/0011). Pure.

`Membership.sees_payloads` says who may see them. An auditor may not until they reveal a payload
(`audit.pages.show.reveal`). A page that shows only payloads denies access
(`tenant_page(needs_payloads=True)`); all other pages say that they hide them. Error messages, the
received values of violations and the reasons of decisions are in the index, but they quote
payloads.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from audit.queries.calls import Call
from audit.queries.decisions import Decision
from audit.queries.listed_call import ListedCall
from audit.queries.traces import Reason


def without_message[C: Call | ListedCall | Reason](of: C) -> C:
    """A call, or the reason of a trace, without its error message."""
    return replace(of, error_message=None) if of.error_message else of


def without_reasons(decisions: Mapping[UUID, Decision]) -> dict[UUID, Decision]:
    """Decisions without their reasons."""
    return {pk: replace(decision, reason=None) for pk, decision in decisions.items()}


def without_messages[C: Call | ListedCall](calls: Iterable[C]) -> list[C]:
    """The calls without their error messages."""
    return [without_message(call) for call in calls]
