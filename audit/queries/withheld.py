"""What a member who sees no payloads is shown of a call (docs/adr/0011). Pure.

`Membership.sees_payloads` says who that is; an auditor is until they reveal it
(`audit.pages.show.reveal`). A page that shows nothing but payloads refuses
(`tenant_page(needs_payloads=True)`); all others say that they leave them out. An error's message
and what a violation says was received are in the index, but quote payloads.
"""

from collections.abc import Iterable
from dataclasses import replace

from audit.queries.call_list import ListedCall
from audit.queries.calls import Call
from audit.queries.traces import Reason


def without_message[C: Call | ListedCall | Reason](of: C) -> C:
    """A call, or the reason of a trace, without its error's message."""
    return replace(of, error_message=None) if of.error_message else of


def without_messages[C: Call | ListedCall](calls: Iterable[C]) -> list[C]:
    """The calls without their errors' messages."""
    return [without_message(call) for call in calls]
