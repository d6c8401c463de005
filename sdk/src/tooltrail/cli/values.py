"""How `tooltrail query` writes the values of the API's documents."""

from collections.abc import Callable, Mapping
from typing import Any

type Row = Mapping[str, Any]


def text(name: str) -> Callable[[Row], str]:
    """Show a member: numbers with commas, `yes` or `no`, nothing for None."""

    def of(row: Row) -> str:
        value = row.get(name)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return f"{value:,}" if isinstance(value, int) else str(value if value is not None else "")

    return of


def instant(name: str) -> Callable[[Row], str]:
    """Show a member as `2026-11-20 10:15:00`, in UTC as received."""
    return lambda row: str(row.get(name) or "")[:19].replace("T", " ")


def milliseconds(name: str) -> Callable[[Row], str]:
    """Show a member in milliseconds as `duration` does."""
    return lambda row: duration(row.get(name))


def duration(milliseconds: float | None) -> str:
    """Write milliseconds with about three digits and a unit; '' for None."""
    if milliseconds is None:
        return ""
    for unit, length in (("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)):
        if milliseconds >= length or unit == "ms":
            number = milliseconds / length
            return f"{number:.{0 if number >= 100 else 1}f} {unit}"
    return ""


def share(row: Row) -> str:
    """Show the member `share` in percent."""
    return "" if row.get("share") is None else f"{row['share']:.1%}"


def number(name: str) -> Callable[[Row], str]:
    """Show a member that is a number with four digits; nothing for None."""
    return lambda row: "" if row.get(name) is None else f"{row[name]:.4g}"


def joined(name: str) -> Callable[[Row], str]:
    """Show a member that is a list of texts."""
    return lambda row: ", ".join(map(str, row.get(name) or ()))


def count_of(name: str) -> Callable[[Row], str]:
    """Show how many items a member has."""
    return lambda row: f"{len(row.get(name) or ()):,}"


def where(row: Row) -> str:
    """Where a channel leads: its address without secrets."""
    settings = row.get("settings") or {}
    recipients = settings.get("recipients")
    if recipients:
        return ", ".join(map(str, recipients))
    return str(settings.get("url") or settings.get("host") or settings.get("shown") or "")


def why(row: Row) -> str:
    """The error and the violation of a call, or of a trace's reason."""
    parts = [row.get("error_type"), row.get("error_code"), row.get("error_message")]
    text = " ".join(str(part) for part in parts if part)
    if row.get("violation_path"):
        text = f"{text} {row['violation_path']} {row['violation_code']}".strip()
    return text
