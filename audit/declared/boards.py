"""Applies shared boards."""

from audit.declared.work import Work
from audit.queries.boards import (
    BoardError,
    BoardPage,
    boards_of,
    delete_board,
    page_of,
    save_board,
)
from audit.show.boards import problems_of


def apply_boards(work: Work, wanted: list[BoardPage]) -> None:
    """Make shared boards, and change those that say something else."""
    stored = {board.name: board for board in boards_of(None)}
    for index, page in enumerate(wanted):
        path, known = f"boards[{index}]", stored.pop(page.name, None)
        for problem in problems_of(page):
            work.refuse(path, problem)
        if known is not None and page_of(known) == page:
            continue
        try:
            save_board(known, page, None, work.actor, work.now)
        except BoardError as error:
            work.refuse(path, str(error))
        else:
            work.did("change" if known else "create", "board", page.name)
    if work.options.prunes:
        for known in stored.values():
            delete_board(known)
            work.did("remove", "board", known.name)
