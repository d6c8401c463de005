"""Boards over the API: the shared ones, and those of the key's owner."""

from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field, ValidationError

from audit.models import Board
from audit.pages.boards.forms import message_of
from audit.pages.show.router import router
from audit.queries.boards import (
    PANELS_MAX,
    BoardError,
    BoardPage,
    Shows,
    Size,
    boards_of,
    delete_board,
    find_board,
    page_of,
    save_board,
)
from audit.queries.time_range import DEFAULT
from audit.show.boards import problems_of
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, acts
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, ListParams, Page, paged, reads, utc
from tenants.models import Scope, User


class PanelOfBoard(Answer):
    """A part of a board."""

    shows: Shows
    """A chart: `calls` by state, `errors` (their rate), `latency` (p50, p95 and p99) or
    `violations`; or `list`, the newest calls."""
    title: str
    """Empty: what it shows."""
    q: str
    """A query of calls; empty: all."""
    size: Size
    threshold: str
    """A value at which a chart has a line: `5 %`, `2 s`, `100`; empty: none."""


class OneBoard(Answer):
    """A page that people made of charts and lists of calls."""

    id: UUID
    name: str
    is_shared: bool
    """Whether all members see it; else only the key's owner."""
    range: str
    """The range that it opens with."""
    panels: list[PanelOfBoard]
    """In their order."""
    changed_at: datetime
    changed_by: str


class BoardList(Page[OneBoard]):
    """Boards by name."""


class BoardBody(Body):
    """What a board says."""

    name: str
    is_shared: bool = True
    """Whether all members see it; else only the key's owner."""
    range: str = Field(DEFAULT, examples=["24h"])
    """The range that it opens with: `15m`, `1h`, `6h`, `24h`, `7d`, `30d` or `90d`."""
    panels: list[dict[str, Any]] = Field([], max_length=PANELS_MAX)
    """Each with `shows`, `title`, `q`, `size` and `threshold`, as they are listed; all but `shows`
    may be left out."""


@reads(router, "/boards", BoardList, tag="figures", problems=("cursor", "limit"))
def list_boards(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the shared boards, and those of the key's owner."""
    boards = boards_of(_owner(Act(request, cast(ApiRequest, request).auth)))
    shown, after = paged("boards", boards, params, lambda one: f"{one.name}\n{one.id}")
    return {"items": [_board(one) for one in shown], "next": after}


@reads(router, "/boards/{uuid:board_id}", OneBoard, tag="figures", problems=("not_found",))
def read_board(request: HttpRequest, board_id: Path[UUID]) -> dict[str, Any]:
    """Get a board as JSON. PUT takes its `name`, `is_shared`, `range` and `panels`."""
    return _board(_find(Act(request, cast(ApiRequest, request).auth), board_id))


@acts(
    router,
    "POST",
    "/boards",
    OneBoard,
    scope=Scope.OPERATE,
    tag="figures",
    body=BoardBody,
    status=201,
    problems=("conflict", "no_owner"),
)
def create_board(act: Act) -> dict[str, Any]:
    """Make a board."""
    return _save(act, None)


@acts(
    router,
    "PUT",
    "/boards/{uuid:board_id}",
    OneBoard,
    scope=Scope.OPERATE,
    tag="figures",
    body=BoardBody,
    problems=("not_found", "conflict", "no_owner"),
)
def replace_board(act: Act, board_id: Path[UUID]) -> dict[str, Any]:
    """Replace what a board says."""
    return _save(act, _find(act, board_id))


@acts(
    router,
    "DELETE",
    "/boards/{uuid:board_id}",
    OneBoard,
    scope=Scope.OPERATE,
    tag="figures",
    problems=("not_found",),
)
def remove_board(act: Act, board_id: Path[UUID]) -> dict[str, Any]:
    """Delete a board and return it."""
    board = _find(act, board_id)
    delete_board(board)
    return _board(board)


def _save(act: Act, board: Board | None) -> dict[str, Any]:
    body = act.read(BoardBody)
    try:
        page = BoardPage.model_validate(body.model_dump(exclude={"is_shared"}))
    except ValidationError as error:
        where = ".".join(str(one) for one in error.errors()[0]["loc"])
        raise ProblemError(
            "invalid", ": ".join(filter(None, (where, message_of(error)))), parameter="panels"
        ) from error
    for problem in problems_of(page):
        raise ProblemError("invalid", problem, parameter="panels")
    owner = None if body.is_shared else act.owner
    try:
        return _board(save_board(board, page, owner, act.actor, timezone.now()))
    except BoardError as error:
        raise ProblemError("conflict", str(error)) from error


def _owner(act: Act) -> User | None:
    """The key's owner, if it has one who is still a member."""
    try:
        return act.owner
    except ProblemError:
        return None


def _find(act: Act, pk: UUID) -> Board:
    board = find_board(pk, _owner(act))
    if board is None:
        raise ProblemError("not_found", "Board not found.")
    return board


def _board(board: Board) -> dict[str, Any]:
    return {
        "id": board.id,
        "is_shared": board.user_id is None,
        "changed_at": utc(board.changed_at),
        "changed_by": board.changed_by,
        **page_of(board).model_dump(mode="json"),
    }
