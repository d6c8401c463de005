"""`tooltrail query`: shows the server's data in a terminal.

Owns the requests and the layout of the answers. The documents are the API's own, and `--json`
prints them unchanged. The API key comes from the environment only, because every user of a machine
can read command lines.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import quote
from uuid import UUID

from tooltrail.cli.bar import Bar
from tooltrail.cli.follow import EVERY_SECONDS, follow, seconds
from tooltrail.cli.tables import Table, tame
from tooltrail.cli.values import Row, instant
from tooltrail.cli.view import View
from tooltrail.cli.views import OPTIONS, VIEWS, VIOLATION_ROWS
from tooltrail.settings import Settings
from tooltrail.transport import Answer, Transport, UnreachableError

ROWS = 50
"""Rows shown by default."""
PAGE = 200
"""Rows per request; every list of the server allows at least this many."""
EXIT_CODES = "Exit codes: 0 success, 1 server unreachable or request rejected, 2 wrong usage."
_EXAMPLES = """\
examples:
  tooltrail query summary --range 7d
  tooltrail query calls tool:search state:error 'duration:>2s'
  tooltrail query calls state:error --all --json > failed.ndjson
  tooltrail query calls tool:search --follow
  tooltrail query call 018fd0a2-7c1e-7d52-9b7c-5a4c3f2e1d0b
  tooltrail query traces --state failed --range 24h
  tooltrail query violations --rows --tool search
  tooltrail query diff get_weather --from 1 --to 2

TOOLTRAIL_URL is the server's URL, TOOLTRAIL_API_KEY a key with the scope read. Payloads also need
the scope payloads."""
_NOT_UNDERSTOOD = 422
_AGAIN = {429, 500, 502, 503, 504}
"""Statuses after which `--follow` asks again."""
_STRANGE = "the response is not from a Tooltrail server"


class QueryError(Exception):
    """There is no answer to show. The message says why."""


class WrongQueryError(QueryError):
    """The server does not understand the query: its terms, its range, or an option."""


def add_parser(verbs: Any) -> None:
    """Add `query` to the command line."""
    parser = verbs.add_parser(
        "query",
        help="query the server: calls, traces, figures",
        description="Query the server. Prints tables, or the API's JSON with --json.",
        epilog=f"{_EXAMPLES}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    views = parser.add_subparsers(required=True, metavar=" | ".join(VIEWS))
    for name, view in VIEWS.items():
        of = views.add_parser(name, help=view.help, description=view.help, epilog=EXIT_CODES)
        for argument, help_text in view.arguments.items():
            more: dict[str, Any] = {"metavar": argument.upper()}
            if argument == "q":
                more = {"metavar": "TERM", "nargs": "*"}
            of.add_argument(argument, help=help_text, **more)
        for option in view.options:
            flag = f"--{option.replace('_', '-')}"
            more = OPTIONS[option] | view.needs.get(option, {})
            if "action" not in more:
                more = {"metavar": option.upper().replace("_", "-"), **more}
            of.add_argument(flag, dest=f"ask_{option}", **more)
        if view.is_paged or "rows" in view.options:
            of.add_argument("--limit", type=_positive, default=ROWS, help=f"maximum rows ({ROWS})")
            of.add_argument("--all", action="store_true", help="fetch all rows, page by page")
        if view.can_follow:
            of.add_argument("--follow", action="store_true", help="go on and show new calls")
            of.add_argument(
                "--every",
                type=seconds,
                default=EVERY_SECONDS,
                metavar="SECONDS",
                help=f"with --follow: how often ({EVERY_SECONDS:.0f})",
            )
        of.add_argument("--json", action="store_true", help="print JSON; lists: one row per line")
        of.add_argument("--url", help="the server's URL (TOOLTRAIL_URL)")
        of.set_defaults(run=run, view=name)


def run(options: argparse.Namespace) -> int:
    """Send the query and print the answer. Returns the exit code."""
    settings = Settings.resolve(url=options.url)
    if not settings.url or not settings.api_key:
        _complain("set TOOLTRAIL_URL and TOOLTRAIL_API_KEY")
        return 2
    agent = f"tooltrail-query/{version('tooltrail')}"
    transport = Transport(settings.url, settings.api_key, agent)
    try:
        if getattr(options, "follow", False):
            _follow(transport, options)
        else:
            _show(transport, options)
        sys.stdout.flush()
    except QueryError as error:
        _complain(str(error))
        return 2 if isinstance(error, WrongQueryError) else 1
    except UnreachableError as error:
        _complain(f"{settings.url} cannot be reached ({error})")
        return 1
    except (KeyError, TypeError):  # JSON, but not a document of this API
        _complain(_STRANGE)
        return 1
    except BrokenPipeError:  # the reader has closed the pipe, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        transport.close()
    return 0


def _show(transport: Transport, options: argparse.Namespace) -> None:
    view = VIEWS[options.view]
    if options.view == "violations" and options.ask_rows:
        view = VIOLATION_ROWS
    path, params = _request(transport, view, options)
    table = Table(view.columns, _width(), is_coloured=_is_coloured())
    # If both streams are the same terminal, the bar would appear between the rows.
    is_seen = sys.stderr.isatty() and not sys.stdout.isatty()
    shown, bar = 0, Bar(is_shown=is_seen and view.is_paged and options.all)
    for document in _documents(transport, view, path, params, options):
        rows = _rows(document, view)
        if options.json:
            for one in rows if view.is_paged else [document]:
                _print(json.dumps(one))
        else:
            if not shown and view.facts is not None:
                for line in view.facts(document):
                    _print(line)
            if rows:
                for line in table.lines(rows):
                    _print(line)
        shown += len(rows)
        bar.draw_text(f"{shown:,} rows")
        if document.get("next") and not view.is_paged:
            _complain(f"{shown:,} rows shown; use a shorter range or --tool for the others")
        elif document.get("next") and not options.all:
            if shown >= options.limit:
                _complain(f"{shown} rows shown; use --limit N or --all for more")
            elif document.get("searched_until"):
                _complain(
                    f"searched back to {instant('searched_until')(document)} UTC;"
                    " use --all to search further"
                )
        if not view.is_paged and document.get("searched_until"):
            _complain(
                f"figures of the calls since {instant('searched_until')(document)} UTC;"
                " a shorter range has fewer calls to read"
            )
    bar.end()
    if view.rows and not shown and not options.json:
        _print("No results.")


def _request(
    transport: Transport, view: View, options: argparse.Namespace
) -> tuple[str, dict[str, str]]:
    """Path and parameters of a view. Raises QueryError and UnreachableError."""
    params = {
        name.removeprefix("ask_"): str(value)
        for name, value in vars(options).items()
        if name.startswith("ask_") and value is not None and not isinstance(value, bool)
    }
    if "q" in view.arguments and options.q:
        params["q"] = " ".join(options.q)
    path = view.path
    for name in view.arguments:
        given = str(getattr(options, name))
        if name == "tool" and f"{{{name}}}" in path:
            given = _tool_id(transport, given)
        path = path.replace(f"{{{name}}}", quote(given, safe=""))
    return path, params


def _tool_id(transport: Transport, name: str) -> str:
    """The id of the tool of this name, or the id itself. Raises QueryError."""
    try:
        return str(UUID(name))
    except ValueError:
        pass
    query = {"limit": str(PAGE)}
    while True:
        document = _document(transport.get("tools", query))
        for tool in _rows(document, VIEWS["tools"]):
            if tool["name"] == name:
                return str(tool["id"])
        if not document.get("next"):
            raise QueryError(f"no tool is named {tame(name)}")
        query["cursor"] = document["next"]


def _follow(transport: Transport, options: argparse.Namespace) -> None:
    """Show new rows until Ctrl-C. A server that does not answer is asked again."""
    view = VIEWS[options.view]
    path, params = _request(transport, view, options)
    table = Table(view.columns, _width(), is_coloured=_is_coloured())
    is_silent = False

    def ask(more: Mapping[str, str]) -> list[Row] | None:
        nonlocal is_silent
        try:
            answer = transport.get(path, {**params, **more})
        except UnreachableError as error:
            reason = f"cannot be reached ({error})"
        else:
            if answer.status not in _AGAIN:
                is_silent = False
                return _rows(_document(answer), view)
            reason = f"answers {answer.status}"
            time.sleep(answer.retry_after or 0)
        if not is_silent:
            _complain(f"the server {reason}; it is asked again")
        is_silent = True
        return None

    def show(rows: list[Row]) -> None:
        for line in map(json.dumps, rows) if options.json else table.lines(rows):
            _print(line)
        sys.stdout.flush()

    follow(ask, show, min(options.limit, PAGE), options.every)


def _documents(
    transport: Transport, view: View, path: str, params: Mapping[str, str], options: Any
) -> Iterator[Row]:
    """The answer, or all its pages. Raises QueryError and UnreachableError."""
    query = dict(params)
    if not view.is_paged:
        yield _document(transport.get(path, query))
        return
    left = None if options.all else options.limit
    while left is None or left > 0:
        query["limit"] = str(PAGE if left is None else min(PAGE, left))
        document = _document(transport.get(path, query))
        yield document
        if not document.get("next") or (left is not None and document.get("searched_until")):
            return
        query["cursor"] = document["next"]
        left = None if left is None else left - len(_rows(document, view))


def _rows(document: Row, view: View) -> list[Row]:
    """The rows of an answer. Older servers have them under the name of the list only."""
    if not view.rows:
        return []
    rows: list[Row] = document["items"] if "items" in document else document[view.rows]
    return rows


def _document(answer: Answer) -> Row:
    if answer.status != 200:
        detail = answer.document.get("detail")
        refusal = WrongQueryError if answer.status == _NOT_UNDERSTOOD else QueryError
        raise refusal(tame(str(detail)) if detail else f"{_STRANGE} ({answer.status})")
    if not answer.document:
        raise QueryError(_STRANGE)
    return answer.document


def _width() -> int | None:
    """The terminal's width in cells; None if the output goes to a file or another program."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None


def _is_coloured() -> bool:
    """Whether a terminal shows the output and nobody asked for no colours (no-color.org)."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not is_plain


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be a whole number, 1 or more")
    return number


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"tooltrail: {text}\n")
