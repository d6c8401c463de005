"""Creates versions: by publishing a contract, and when an executor registers its tools.

`tools_registry.schemas` validates contracts. All functions need the tenant's scope.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import F, Q

from tenants.models import Tenant
from tools_registry.attempts import Attempts, expired_among, is_expired, revive
from tools_registry.changes import Publisher, lock_tool, record_changes
from tools_registry.models import (
    ChangeKind,
    ContractModel,
    Tool,
    ToolChange,
    ToolDraft,
    ToolVersion,
)
from tools_registry.schemas import ToolContract, judging_problems

_AT_ONCE = 500


class AlreadyPublishedError(Exception):
    """The same contract is already a version."""

    def __init__(self, version: ToolVersion) -> None:
        super().__init__(f"This contract is already version {version.number}.")
        self.version = version


@dataclass
class Registration:
    """The result for each contract that an executor sent."""

    registered: list[ToolVersion] = field(default_factory=list)
    """New versions; each is now its tool's current version."""
    known: list[ToolVersion] = field(default_factory=list)
    kept: list[tuple[ToolContract, Tool]] = field(default_factory=list)
    """`keep`: the tool has another contract, which stays."""
    refused: list[tuple[ToolContract, Tool]] = field(default_factory=list)
    """`throw`: the tool has another contract; nothing changed."""
    unusable: list[tuple[ToolContract, str]] = field(default_factory=list)
    """Contracts whose schemas cannot be used for validation, each with the reason."""


def find_versions(tenant: Tenant, digests: Sequence[str]) -> dict[str, ToolVersion]:
    """The tenant's versions with these digests, by digest. One query."""
    versions = ToolVersion.objects.filter(
        tenant=tenant, tool__tenant=tenant, digest__in=digests
    ).select_related("tool")
    return {version.digest: version for version in versions}


def versions_named(
    tenant_id: UUID, names: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], ToolVersion]:
    """The versions that events name by tool and version (a number or a digest). At most one query.

    Schemas and meta are not loaded. What is not registered is left out.
    """
    wanted = set(names)
    if not wanted:
        return {}  # Django finds that out only after it has made the query: 1 ms
    numbers = {int(text) for _, text in wanted if text.isascii() and text.isdecimal()}
    versions = (
        ToolVersion.objects.filter(
            Q(number__in=[number for number in numbers if number < 2**31])
            | Q(digest__in=[text for _, text in wanted]),
            tenant_id=tenant_id,
            tool__tenant_id=tenant_id,
            tool__name__in=[name for name, _ in wanted],
        )
        .select_related("tool")
        .defer("input_schema", "output_schema", "meta")
    )
    named = {}
    for version in versions:
        for text in (str(version.number), version.digest):
            if (version.tool.name, text) in wanted:
                named[version.tool.name, text] = version
    return named


def find_version(tool: Tool, number: int) -> ToolVersion | None:
    """A tool's version with this number, or None. One query."""
    versions = ToolVersion.objects.filter(tenant=tool.tenant_id, tool=tool, number=number)
    return versions.filter(tool__tenant=tool.tenant_id).select_related("tool").first()


def contract_of(source: ToolDraft | ToolVersion) -> ToolContract:
    """The contract of a draft or version; not validated again, as that was done on storing."""
    members = ToolContract.model_fields.keys() - {"name"}
    return ToolContract.model_construct(
        name=source.tool.name, **{member: getattr(source, member) for member in members}
    )


def contracts_in_use(tool: Tool) -> list[ContractModel]:
    """The tool's current version, if any: its schemas may be kept whatever they are."""
    versions = ToolVersion.objects.filter(tenant=tool.tenant_id, tool=tool)
    return list(versions.filter(number=tool.current_number))


def current_versions(tenant_id: UUID, *, after: str = "", size: int) -> list[ToolVersion]:
    """The current versions of tools whose name sorts after `after`, by name. One query.

    Schemas and meta are not loaded.
    """
    versions = (
        ToolVersion.objects.filter(
            tenant_id=tenant_id, tool__tenant_id=tenant_id, number=F("tool__current_number")
        )
        .select_related("tool")
        .defer("input_schema", "output_schema", "meta")
        .order_by("tool__name")
    )
    if after:
        versions = versions.filter(tool__name__gt=after)
    return list(versions[:size])


def publish_version(
    tool: Tool,
    contract: ToolContract,
    publisher: Publisher,
    *,
    reason: str = "",
    draft: ToolDraft | None = None,
    **details: Any,
) -> ToolVersion:
    """Publish a contract as the tool's next and current version; `details` are recorded.

    Raises AlreadyPublishedError. Locks the tool until the transaction ends, so that two
    publishers get two numbers.
    """
    contracts = [(contract, details)]
    return publish_versions(tool, contracts, publisher, reason=reason, draft=draft)[0]


def publish_versions(
    tool: Tool,
    contracts: Sequence[tuple[ToolContract, Mapping[str, Any]]],
    publisher: Publisher,
    *,
    reason: str = "",
    draft: ToolDraft | None = None,
) -> list[ToolVersion]:
    """Publish different contracts in order, each with its details. Raises AlreadyPublishedError.

    `draft` is one that becomes the version: it is deleted. Nine statements per few hundred
    contracts.
    """
    lock_tool(tool)
    known = find_versions(tool.tenant, [contract.digest for contract, _ in contracts])
    if known:
        raise AlreadyPublishedError(next(iter(known.values())))
    first = tool.latest_number + 1
    versions = [
        ToolVersion(
            tenant=tool.tenant,
            tool=tool,
            number=number,
            digest=contract.digest,
            **contract.model_dump(exclude={"name"}),
            created_by=publisher.user_name,
            created_by_key=publisher.key_id,
        )
        for number, (contract, _) in enumerate(contracts, first)
    ]
    tool.latest_number = tool.current_number = versions[-1].number
    # The tool is locked and its name is part of each digest, so none of these exists already.
    ToolVersion.objects.bulk_create(versions, batch_size=_AT_ONCE, ignore_conflicts=True)
    drafts = [] if draft is None else [draft]
    for each in drafts:
        ToolDraft.objects.filter(tenant=tool.tenant_id, pk=each.pk).delete()
    changes = []
    for version, (_, details) in zip(versions, contracts, strict=True):
        members: dict[str, Any] = {"details": dict(details)}
        kind, number, digest = ChangeKind.PUBLISHED, version.number, version.digest
        changes.append(ToolChange(kind=kind, number=number, digest=digest, **members))
    saving = ["latest_number", "current_number"]
    record_changes(
        tool, changes, publisher, reason=reason, saving=saving, rows=[*versions, *drafts]
    )
    return versions


def register_contracts(
    tenant: Tenant,
    contracts: Sequence[ToolContract],
    publisher: Publisher,
    *,
    mentioned: Sequence[str] = (),
    unread: Sequence[tuple[str, str]] = (),
) -> Registration:
    """Register an executor's contracts, one after the other, by the rules of `on_collision`.

    A known contract changes nothing, even if it is not the current one (docs/adr/0017).
    `mentioned` are digests sent without a contract; they may be known or not. A new contract is
    published if its tool has no version yet, or if the name is free again because an ephemeral
    tool has expired. Otherwise the new contract's `on_collision` decides: `replace` makes it the
    current version, `keep` ignores it, `throw` refuses it; the last two are recorded. Source: the
    ADK's `ToolRegistry.merge`.

    A contract whose schemas cannot be used for validation is always refused and recorded. So are
    entries that are not contracts: `unread`, their names and reasons.

    1. Without a lock, skip known contracts: executors start often and change seldom.
    2. Insert rows for new names; of simultaneous inserts one succeeds and the others wait.
    3. Lock all tools concerned, ordered by name, so that two executors with the same tools wait
       for each other and do not deadlock.
    4. Query again, because 3 may have waited, and publish.
    """
    digests = [*mentioned, *(contract.digest for contract in contracts)]
    existing = find_versions(tenant, digests)
    new = [contract for contract in contracts if contract.digest not in existing]
    problems = {contract.digest: judging_problems(contract) for contract in new}
    unseen = {contract.name for contract in new} | {name for name, _ in unread}
    expired = {version.tool.name for version in expired_among(existing.values())}
    result = Registration()
    tools: dict[str, Tool] = {}
    if unseen or expired:
        tools = _lock_tools(tenant, unseen | expired)
        existing = find_versions(tenant, digests)
        for version in expired_among(existing.values()):
            revive(version, tools[version.tool.name], publisher)
    attempts = Attempts(tools[name] for name in unseen)
    result.known = [existing[digest] for digest in dict.fromkeys(mentioned) if digest in existing]
    for contract in contracts:
        known = existing.get(contract.digest)
        if known is not None:
            result.known.append(known)
            continue
        tool = tools[contract.name]
        if reason := _unusable(tool, contract, problems[contract.digest]):
            attempts.record(tool, contract, ChangeKind.REFUSED, publisher, reason=reason)
            result.unusable.append((contract, reason))
            continue
        is_free = tool.current_number == 0 or contract.on_collision == "replace"
        if is_free or is_expired(tool):
            version = publish_version(tool, contract, publisher)
            existing[version.digest] = version
            result.registered.append(version)
        elif contract.on_collision == "keep":
            attempts.record(tool, contract, ChangeKind.KEPT, publisher)
            result.kept.append((contract, tool))
        else:
            attempts.record(tool, contract, ChangeKind.REFUSED, publisher)
            result.refused.append((contract, tool))
    for name, reason in unread:
        attempts.record(tools[name], None, ChangeKind.REFUSED, publisher, reason=reason)
    return result


def schemas_in_use(tool: Tool) -> list[Any]:
    """The schemas of the current version. One query; none without a version."""
    current = find_version(tool, tool.current_number) if tool.current_number else None
    return [current.input_schema, current.output_schema] if current else []


def _unusable(tool: Tool, contract: ToolContract, problems: Mapping[str, str]) -> str:
    """Why a contract is refused because of its schemas; '' if it is not."""
    if not problems:
        return ""
    left = judging_problems(contract, in_use=schemas_in_use(tool))
    return "; ".join(f"{member}: {problem}" for member, problem in left.items())


def _lock_tools(tenant: Tenant, names: set[str]) -> dict[str, Tool]:
    Tool.objects.bulk_create(
        [Tool(tenant=tenant, name=name) for name in sorted(names)], ignore_conflicts=True
    )
    tools = Tool.objects.select_for_update().filter(tenant=tenant, name__in=names).order_by("name")
    return {tool.name: tool for tool in tools}
