"""What executors bring in vain, and tools of one turn that come back: put on the tool's record.

All functions need the tenant's scope.
"""

from collections.abc import Iterable
from datetime import UTC
from uuid import UUID

from django.utils import timezone

from tenants.actions import storable
from tools_registry.changes import REASON_MAX_LENGTH, STATE_AFTER, Publisher, record_change
from tools_registry.models import ChangeKind, Tool, ToolChange, ToolVersion
from tools_registry.schemas import ToolContract

PER_DAY = 50
"""Attempts of one tool that are put on record on a UTC day: executors start often."""


type _Attempt = tuple[str, str, int | None, str, str]
"""Kind, digest, version in favour of which, key and reason."""


class Attempts:
    """Of this day, on the tools that are locked; the same one is put on record once."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._day = timezone.now().astimezone(UTC).date()
        self._known: dict[UUID, set[_Attempt]] = {}
        rows = ToolChange.objects.filter(
            tool__in=[tool.pk for tool in tools], attempted_on=self._day
        ).values_list("tool_id", "kind", "digest", "number", "key_id", "reason")
        for tool_id, kind, digest, number, key_id, reason in rows:
            attempt = (kind, digest, number, key_id, reason)
            self._known.setdefault(tool_id, set()).add(attempt)

    def record(
        self,
        tool: Tool,
        contract: ToolContract | None,
        kind: ChangeKind,
        publisher: Publisher,
        *,
        reason: str = "",
    ) -> None:
        """Note that a contract was kept out, or refused, in favour of the current version.

        None: what was brought is no contract at all; why, the reason says.
        """
        known = self._known.setdefault(tool.pk, set())
        digest, number = contract.digest if contract else "", tool.current_number or None
        reason = storable(reason[:REASON_MAX_LENGTH])  # it quotes what was brought
        attempt = (str(kind), digest, number, publisher.key_id, reason)
        if attempt in known or len(known) >= PER_DAY:
            return
        known.add(attempt)
        record_change(
            tool,
            kind,
            publisher,
            number=number,
            digest=digest,
            reason=reason,
            contract=contract.model_dump() if contract else None,
            attempted_on=self._day,
        )


def is_expired(tool: Tool) -> bool:
    """Whether the tool lived for a turn and is gone: its name is free. Two queries at most."""
    current = ToolVersion.objects.filter(
        tenant=tool.tenant_id, tool=tool, number=tool.current_number, ephemeral=True
    )
    return bool(expired_among(current))


def expired_among(versions: Iterable[ToolVersion]) -> list[ToolVersion]:
    """Those the server retired for not being called. One query if any is ephemeral, else none."""
    ephemeral = [version for version in versions if version.ephemeral]
    if not ephemeral:
        return []
    last = (
        ToolChange.objects.filter(
            tool__in=[version.tool_id for version in ephemeral], kind__in=list(STATE_AFTER)
        )
        .order_by("tool_id", "number", "-ordinal")
        .distinct("tool_id", "number")
    )
    expired = {
        (tool_id, number)
        for tool_id, number, *how in last.values_list(
            "tool_id", "number", "kind", "user_name", "key_id"
        )
        if how == [ChangeKind.RETIRED, "", ""]
    }
    return [version for version in ephemeral if (version.tool_id, version.number) in expired]


def revive(version: ToolVersion, tool: Tool, publisher: Publisher) -> None:
    """Restore a version that was retired for not being called; its tool is locked."""
    record_change(
        tool,
        ChangeKind.RESTORED,
        publisher,
        number=version.number,
        digest=version.digest,
        reason="Its executor registered it again.",
    )
