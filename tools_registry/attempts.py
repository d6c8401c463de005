"""Records registrations that changed nothing, and restores ephemeral tools that come back.

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
"""Recorded attempts per tool and UTC day; a limit, because executors start often."""


type _Attempt = tuple[str, str, int | None, str, str]
"""Kind, digest, number of the version that stayed current, key and reason."""


class Attempts:
    """Today's attempts on the locked tools; the same attempt is recorded once."""

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
        """Record that a contract was ignored or refused and the current version stayed.

        `contract` is None if the sent data is not a contract; `reason` then says why.
        """
        known = self._known.setdefault(tool.pk, set())
        digest, number = contract.digest if contract else "", tool.current_number or None
        reason = storable(reason[:REASON_MAX_LENGTH])  # it may quote the sent data
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
    """Whether an ephemeral tool has expired, so that its name is free. At most two queries."""
    current = ToolVersion.objects.filter(
        tenant=tool.tenant_id, tool=tool, number=tool.current_number, ephemeral=True
    )
    return bool(expired_among(current))


def expired_among(versions: Iterable[ToolVersion]) -> list[ToolVersion]:
    """The ephemeral versions that the server retired because no call used them.

    One query if any version is ephemeral, else none.
    """
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
    """Restore an expired version that an executor registered again; its tool is locked."""
    record_change(
        tool,
        ChangeKind.RESTORED,
        publisher,
        number=version.number,
        digest=version.digest,
        reason="An executor registered it again.",
    )
