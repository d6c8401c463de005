"""Applying one tenant of a file: what is done, what is wrong, and what stays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from audit.declared.document import Secret
from audit.declared.files import SecretError, Secrets, missing
from tenants.models import Tenant

ChangeAction = Literal["create", "change", "remove"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the file and what is stored."""

    action: ChangeAction
    kind: str
    """What it is about: `key`, `member`, `settings` …"""
    name: str
    detail: str = ""

    def __str__(self) -> str:
        mark = {"create": "+", "change": "~", "remove": "-"}[self.action]
        return f"{mark} {self.kind} {self.name}".rstrip() + (
            f": {self.detail}" if self.detail else ""
        )


@dataclass(frozen=True, slots=True)
class Options:
    """How files are applied."""

    is_dry: bool = False
    """Whether nothing is stored: only the differences are wanted."""
    prunes: bool = False
    """Whether what a section does not name is removed."""
    may_erase: bool = False
    """Whether a shorter retention, which erases older data, is confirmed."""


@dataclass
class Outcome:
    """What became of one tenant, or of the installation's part."""

    slug: str | None
    """Of the tenant; None for the installation."""
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is to be known: what was not removed and why, who must still accept an invitation."""
    problems: list[str] = field(default_factory=list)
    """With problems, nothing was stored."""
    links: dict[str, str] = field(default_factory=dict)
    """Links of new invitations by person. They cannot be shown again."""

    @property
    def subject(self) -> str:
        """The tenant's slug, or the installation, for people. No slug has brackets."""
        return self.slug or "(installation)"

    @property
    def document(self) -> dict[str, Any]:
        """The outcome as JSON."""
        return {
            **({"tenant": self.slug} if self.slug else {}),
            "changes": [
                {
                    "action": one.action,
                    "kind": one.kind,
                    "name": one.name,
                    "detail": one.detail,
                }
                for one in self.changes
            ],
            "notes": self.notes,
            "problems": self.problems,
            "invitations": self.links,
        }


@dataclass
class Part:
    """A part of a file that is being applied."""

    actor: str
    now: datetime
    place: str
    """File, and path in it: problems begin with it."""
    file: str
    secrets: Secrets
    options: Options
    outcome: Outcome

    def did(self, action: ChangeAction, kind: str, name: str, detail: str = "") -> None:
        """Note a change that was made."""
        self.outcome.changes.append(Change(action, kind, name, detail))

    def refuse(self, path: str, reason: str) -> None:
        """Note a problem: nothing will be stored."""
        reason = reason.removesuffix(".")
        self.outcome.problems.append(f"{self.place}.{path}: {reason}")

    def note(self, text: str) -> None:
        """Note what is to be known."""
        self.outcome.notes.append(text)

    def secret(self, path: str, reference: Secret | None, *, is_needed: bool) -> str:
        """A secret, or "" without one. Refuses one that cannot be read, or is needed."""
        if reference is None:
            if is_needed:
                self.refuse(path, "is needed: name where the secret is")
            return ""
        try:
            text = self.secrets.read(reference)
        except SecretError as error:
            self.refuse(path, str(error))
            return ""
        if text is None and is_needed:
            self.refuse(path, missing(reference))
        return text or ""


@dataclass
class Work(Part):
    """A tenant that is being applied. Its scope is open."""

    tenant: Tenant
    is_new: bool


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What differs, as `payload_days: forever → 90, …`; '' if nothing does."""
    parts = [
        f"{name}: {_shown(before[name])} → {_shown(value)}"
        for name, value in after.items()
        if before[name] != value
    ]
    return ", ".join(parts)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(map(str, value)) + "]"
    return "none" if value is None or value == "" else str(value)
