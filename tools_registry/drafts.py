"""Drafts of a tool's next version: create, save, publish and discard.

Saving and publishing name the revision that was read, so that nobody overwrites what another
person has saved since. Publishing a draft that is known to break something needs a reason.

All functions need the tenant's scope. Those that change something lock the tool until the
transaction ends.
"""

from django.utils import timezone

from tools_registry.changes import Publisher, lock_tool, record_change
from tools_registry.contract_diff import ContractDiff, compare_contracts
from tools_registry.models import ChangeKind, Tool, ToolDraft, ToolVersion
from tools_registry.schemas import ToolContract
from tools_registry.versions import contract_of, find_version, publish_version


class DraftExistsError(Exception):
    """The tool has a draft already."""

    def __init__(self, draft: ToolDraft) -> None:
        super().__init__(f"This tool already has a draft, saved by {draft.saved_by}.")
        self.draft = draft


class StaleDraftError(Exception):
    """The draft has changed since it was read; `draft` is the stored one, or None if deleted."""

    def __init__(self, draft: ToolDraft | None) -> None:
        reason = f"{draft.saved_by} has saved it." if draft else "It no longer exists."
        super().__init__(f"The draft has changed since you opened it: {reason}")
        self.draft = draft


class ReasonNeededError(Exception):
    """The draft is known to break something, and no reason was given."""

    def __init__(self) -> None:
        super().__init__("The draft has breaking changes. Enter a reason to publish it anyway.")


def find_draft(tool: Tool) -> ToolDraft | None:
    """The tool's draft, or None. One query."""
    return (
        ToolDraft.objects.filter(tenant=tool.tenant_id, tool=tool, tool__tenant=tool.tenant_id)
        .select_related("tool")
        .first()
    )


def create_draft(
    tool: Tool,
    contract: ToolContract,
    by: Publisher,
    *,
    base_number: int | None = None,
    reason: str = "",
) -> ToolDraft:
    """Create a draft with this contract. Raises DraftExistsError.

    `base_number` is the version that it is based on; default: the current one.
    """
    lock_tool(tool)
    known = find_draft(tool)
    if known is not None:
        raise DraftExistsError(known)
    draft = ToolDraft(
        tenant=tool.tenant,
        tool=tool,
        base_number=tool.current_number if base_number is None else base_number,
        saved_at=timezone.now(),
        saved_by=by.label,
        **contract.model_dump(exclude={"name"}),
    )
    draft.save(force_insert=True)
    record_change(
        tool,
        ChangeKind.DRAFT_MADE,
        by,
        digest=contract.digest,
        reason=reason,
        rows=[draft],
        base=draft.base_number,
    )
    return draft


def begin_draft(tool: Tool, by: Publisher, *, number: int = 0) -> ToolDraft:
    """Create a draft from version `number`; 0: the current one, or an empty contract without one.

    Raises DraftExistsError, and LookupError if there is no such version.
    """
    number = number or tool.current_number
    if number:
        version = find_version(tool, number) if number < 2**31 else None
        if version is None:
            raise LookupError(f"{tool.name} has no version {number}")
        contract = contract_of(version)
    else:
        contract = ToolContract(
            name=tool.name, description="", input_schema={"type": "object", "properties": {}}
        )
    return create_draft(tool, contract, by, base_number=number)


def store_draft(
    tool: Tool, contract: ToolContract, by: Publisher, *, expected_revision: int
) -> None:
    """Replace the tool's draft, or create it if `expected_revision` is 0.

    Raises StaleDraftError, and DraftExistsError.
    """
    draft = find_draft(tool)
    if draft is not None:
        save_draft(draft, contract, by, expected_revision=expected_revision)
    elif expected_revision:
        raise StaleDraftError(None)
    else:
        create_draft(tool, contract, by)


def save_draft(
    draft: ToolDraft, contract: ToolContract, by: Publisher, *, expected_revision: int
) -> None:
    """Replace the draft's contract. Raises StaleDraftError."""
    _lock_revision(draft, expected_revision)
    draft.revision = expected_revision + 1
    draft.saved_at, draft.saved_by = timezone.now(), by.label
    for member, value in contract.model_dump(exclude={"name"}).items():
        setattr(draft, member, value)
    draft.save(force_update=True)
    record_change(
        draft.tool,
        ChangeKind.DRAFT_SAVED,
        by,
        digest=contract.digest,
        rows=[draft],
        revision=draft.revision,
    )


def discard_draft(
    draft: ToolDraft, by: Publisher, *, expected_revision: int, reason: str = ""
) -> None:
    """Delete a draft. Raises StaleDraftError."""
    _lock_revision(draft, expected_revision)
    ToolDraft.objects.filter(tenant=draft.tenant_id, pk=draft.pk).delete()
    record_change(draft.tool, ChangeKind.DRAFT_DISCARDED, by, reason=reason, rows=[draft])


def compare_with_current(draft: ToolDraft) -> ContractDiff | None:
    """The diff from the current version to the draft; None without a version. One query."""
    current = find_version(draft.tool, draft.tool.current_number)
    return None if current is None else compare_contracts(contract_of(current), contract_of(draft))


def needs_reason(diff: ContractDiff | None, newly_violating: int) -> bool:
    """Whether the diff, or a replay of calls, shows that the draft breaks something."""
    return newly_violating > 0 or (diff is not None and diff.is_breaking)


def publish(
    draft: ToolDraft,
    by: Publisher,
    *,
    expected_revision: int,
    newly_violating: int,
    reason: str = "",
) -> ToolVersion:
    """Publish a draft as its tool's next and current version; deletes the draft.

    `newly_violating` is the number of stored calls that violate the draft's schemas but not the
    current ones, from a replay of this draft; 0 without a replay. Raises StaleDraftError,
    ReasonNeededError, and AlreadyPublishedError for a contract that is already a version.
    """
    _lock_revision(draft, expected_revision)
    if not reason.strip() and needs_reason(compare_with_current(draft), newly_violating):
        raise ReasonNeededError
    return publish_version(draft.tool, contract_of(draft), by, reason=reason, draft=draft)


def _lock_revision(draft: ToolDraft, expected: int) -> None:
    lock_tool(draft.tool)
    stored = find_draft(draft.tool)
    if stored is None or stored.pk != draft.pk or stored.revision != expected:
        raise StaleDraftError(stored)
