"""Boards: pages that people make of charts and lists of calls.

A private board belongs to one user in one tenant. A shared one belongs to the tenant: all members
see it, editors and admins change it.
"""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from django.db.models import Q
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from audit.models import Board
from audit.queries.call_query import MAX_LENGTH, parse
from audit.queries.saved_views import NAME_LENGTH
from audit.queries.time_range import DEFAULT, LENGTHS
from tenants.actions import Actor, name_of, storable_text
from tenants.models import User, new_id
from tenants.scope import current_tenant_id

PANELS_MAX = 12
QUERIES_MAX = 6
"""Different queries of a board: each is read one by one, which takes a share of a second."""
BOARDS_MAX = 50
"""Boards of one user in one tenant; and shared boards of a tenant."""
THRESHOLD_MAX = 20

Shows = Literal["calls", "errors", "latency", "violations", "list"]
"""A chart by its name on the overview, or the newest calls."""
Size = Literal["third", "half", "wide"]


def _text(text: object) -> object:
    return storable_text(text.strip()) if isinstance(text, str) else text


class Panel(BaseModel):
    """A part of a board."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    shows: Shows
    """A chart: `calls` by state, `errors` (their rate), `latency` (p50, p95 and p99) or
    `violations`; or `list`, the newest calls."""
    title: Annotated[str, BeforeValidator(_text), Field(max_length=NAME_LENGTH)] = ""
    """Empty: what it shows."""
    q: Annotated[str, BeforeValidator(_text), Field(max_length=MAX_LENGTH)] = ""
    """A query of calls without times, which are those of the board. Empty: all calls."""
    size: Size = "half"
    threshold: Annotated[str, BeforeValidator(_text), Field(max_length=THRESHOLD_MAX)] = ""
    """A value at which a chart has a line: `5 %`, `2 s`, `100`."""

    @field_validator("q")
    @classmethod
    def _check_query(cls, text: str) -> str:
        query = parse(text).of_index()
        if query.problems:
            raise ValueError(query.problems[0].message)
        if query.without("since", "until") != str(query):
            raise ValueError("The range is the board's: leave out since and until.")
        return str(query)


class BoardPage(BaseModel):
    """What a board says: its name, its usual range, and its panels in their order."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, BeforeValidator(_text), Field(min_length=1, max_length=NAME_LENGTH)]
    range: str = Field(DEFAULT, examples=["24h"])
    """The range that it opens with, one that pages offer: `15m`, `1h`, `6h`, `24h`, `7d`, `30d`,
    `90d`."""
    panels: Annotated[tuple[Panel, ...], Field(max_length=PANELS_MAX)] = ()

    @field_validator("range")
    @classmethod
    def _check_range(cls, name: str) -> str:
        if name not in LENGTHS:
            raise ValueError(f"Available ranges: {', '.join(LENGTHS)}.")
        return name

    @model_validator(mode="after")
    def _check_queries(self) -> "BoardPage":
        if len({one.q for one in self.panels if one.q}) > QUERIES_MAX:
            raise ValueError(f"A board can have at most {QUERIES_MAX} different queries.")
        return self


NEW_PANELS = (
    Panel(shows="calls", size="wide"),
    Panel(shows="errors", size="third"),
    Panel(shows="latency", size="third"),
    Panel(shows="violations", size="third"),
)
"""What a new board begins with."""


class BoardError(Exception):
    """A board cannot be saved; the message says why."""


def boards_of(user: User | None) -> list[Board]:
    """The shared boards of the scope's tenant and the user's own, by name. One query."""
    mine = Q(user_id=None) if user is None else Q(user_id=None) | Q(user_id=user.pk)
    boards = Board.objects.for_tenant(current_tenant_id()).filter(mine)
    return list(boards.order_by("name", "user_id"))


def find_board(pk: UUID, user: User | None) -> Board | None:
    """A board that this user sees. One query."""
    board = Board.objects.for_tenant(current_tenant_id()).filter(id=pk).first()
    if board is None or board.user_id is None:
        return board
    return board if user is not None and board.user_id == user.pk else None


def page_of(board: Board) -> BoardPage:
    """What a stored board says."""
    return BoardPage(name=board.name, range=board.range, panels=board.panels)


def save_board(
    board: Board | None, page: BoardPage, owner: User | None, actor: Actor, now: datetime
) -> Board:
    """Save a new board (None) or what a stored one says; `owner` None: shared.

    Raises BoardError: another board has this name, or there are too many.
    """
    user_id = None if owner is None else owner.pk
    others = Board.objects.for_tenant(current_tenant_id()).filter(user_id=user_id)
    if board is not None:
        others = others.exclude(id=board.id)
    names = list(others.values_list("name", flat=True))
    if page.name in names:
        raise BoardError("Another board has this name.")
    if len(names) >= BOARDS_MAX:
        raise BoardError(f"There are {BOARDS_MAX} boards already. Delete one first.")
    is_new = board is None
    board = board or Board(tenant_id=current_tenant_id(), id=new_id())
    board.user_id, board.name, board.range = user_id, page.name, page.range
    board.panels = [one.model_dump() for one in page.panels]
    board.changed_at, board.changed_by = now, name_of(actor)
    board.save(force_insert=is_new, force_update=not is_new)
    return board


def delete_board(board: Board) -> None:
    """Delete a board."""
    Board.objects.for_tenant(current_tenant_id()).filter(id=board.id).delete()
