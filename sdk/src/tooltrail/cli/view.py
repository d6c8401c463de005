"""What a view of `tooltrail query` is: the request, and the layout of the answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tooltrail.cli.tables import Column
from tooltrail.cli.values import Row, text


@dataclass(frozen=True)
class View:
    """One request, and how its answer is laid out."""

    help: str
    path: str
    rows: str = ""
    """The member that holds the rows of servers that have no `items`; '' without rows."""
    columns: tuple[Column, ...] = ()
    is_paged: bool = False
    options: tuple[str, ...] = ()
    facts: Callable[[Row], Iterator[str]] | None = None
    """Makes the lines above the rows, for a document that has more than rows."""
    arguments: dict[str, str] = field(default_factory=dict)
    """Positional arguments, each with its help. `tool` in the path is an id; people give a name."""
    can_follow: bool = False
    needs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What is different about an option in this view."""


def column(head: str, of: Callable[[Row], str] | str, **more: Any) -> Column:
    """A column of a member, or of a text made of the row."""
    return Column(head, text(of) if isinstance(of, str) else of, **more)


def number_column(head: str, name: str, goes: int = 0) -> Column:
    """A column of a member that is a number."""
    return column(head, name, is_right=True, goes=goes)
