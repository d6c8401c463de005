"""The list of boards, a board, and its form."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit.models import Board
from audit.pages.boards.forms import BoardForm, PanelForms, read_page
from audit.pages.boards.shown import shown_panels
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.queries.boards import (
    NEW_PANELS,
    BoardError,
    BoardPage,
    boards_of,
    delete_board,
    find_board,
    page_of,
    save_board,
)
from audit.queries.saved_views import saved_views
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role

SHARES = Role.EDITOR
"""The role that makes, changes and deletes shared boards."""
_COLUMNS: Mapping[str, Key[Board]] = {
    "board": lambda board: board.name.casefold(),
    "panels": lambda board: len(board.panels),
    "range": lambda board: board.range,
    "changed": lambda board: board.changed_at,
}
"""The columns by which boards are sorted."""


@require_safe
@tenant_page()
def board_list(request: TenantRequest) -> HttpResponseBase:
    """Show the shared boards and the user's own, and a form for a new one."""
    form = BoardForm(may_share=has_role(request.membership, SHARES))
    return _list(request, form, 200)


@require_POST
@tenant_page()
def board_new(request: TenantRequest) -> HttpResponseBase:
    """Make a board with the usual charts, and show its form."""
    form = BoardForm(request.POST, may_share=has_role(request.membership, SHARES))
    if form.is_valid():
        read = form.cleaned_data
        page = BoardPage(name=read["name"], range=read["range"], panels=NEW_PANELS)
        if (board := _save(request, form, None, page)) is not None:
            return redirect("board_edit", board.id)
    return _list(request, form, 422)


@require_safe
@tenant_page()
def board_detail(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Show a board over the URL's range, or its usual one."""
    board = _board_or_404(request, pk)
    page, now = page_of(board), timezone.now()
    requested = requested_range(request, now, usual=page.range)
    if requested.problem:
        return invalid_range(request, requested, "boards/board_detail.html", page.name)
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "board": board,
        "panels": shown_panels(request, page, requested.range, now),
        "may_edit": _may_edit(request, board),
    }
    return render_page(request, "boards/board_detail.html", "board", context)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page()
def board_edit(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Change a board: its owner, or for a shared one an editor."""
    board = _own_or_shared(request, pk)
    may_share = has_role(request.membership, SHARES)
    if request.method != "POST":
        page = page_of(board)
        form = BoardForm(
            initial={"name": page.name, "range": page.range, "is_shared": board.user_id is None},
            may_share=may_share,
        )
        panels = PanelForms(initial=[one.model_dump() for one in page.panels])
        return _form(request, board, form, panels, 200)
    form, panels = BoardForm(request.POST, may_share=may_share), PanelForms(request.POST)
    wanted = read_page(form, panels)
    if wanted is not None and _save(request, form, board, wanted) is not None:
        messages.success(request, f"Board “{wanted.name}” saved.")
        # Another row for a panel is a saved board with its form open again.
        return redirect("board_edit" if "more" in request.POST else "board_detail", board.id)
    return _form(request, board, form, panels, 422)


@require_POST
@tenant_page()
def board_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete a board: its owner, or for a shared one an editor."""
    board = _own_or_shared(request, pk)
    delete_board(board)
    messages.success(request, f"Board “{board.name}” deleted.")
    return redirect("board_list")


def _save(
    request: TenantRequest, form: BoardForm, board: Board | None, page: BoardPage
) -> Board | None:
    """Save the board; if it cannot be saved, the form says why."""
    owner = None if form.cleaned_data.get("is_shared") else request.user
    try:
        return save_board(board, page, owner, request.user, timezone.now())
    except BoardError as error:
        form.add_error("name", str(error))
        return None


def _board_or_404(request: TenantRequest, pk: UUID) -> Board:
    board = find_board(pk, request.user)
    if board is None:
        raise Http404("no such board")
    return board


def _own_or_shared(request: TenantRequest, pk: UUID) -> Board:
    """A board to be changed. Viewers and auditors change their own only, whatever else exists."""
    board = find_board(pk, request.user)
    if (board is None or board.user_id is None) and not has_role(request.membership, SHARES):
        raise PermissionDenied(f"A shared board requires the role {SHARES.label.lower()}.")
    if board is None:
        raise Http404("no such board")
    return board


def _may_edit(request: TenantRequest, board: Board) -> bool:
    return board.user_id is not None or has_role(request.membership, SHARES)


def _list(request: TenantRequest, form: BoardForm, status: int) -> HttpResponseBase:
    boards = boards_of(request.user)
    context = {
        "boards": sorted_table(request, boards, _COLUMNS, "", page=reverse("board_list")),
        "form": form,
    }
    return render(request, "boards/board_list.html", context, status=status)


def _form(
    request: TenantRequest, board: Board, form: BoardForm, panels: Any, status: int
) -> HttpResponseBase:
    context = {
        "board": board,
        "form": form,
        "panels": panels,
        "views": saved_views(request.user),
    }
    return render(request, "boards/board_form.html", context, status=status)
