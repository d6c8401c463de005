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
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from tooltrail.cli.bar import Bar
from tooltrail.cli.tables import Table, tame
from tooltrail.cli.values import Row, instant
from tooltrail.cli.views import OPTIONS, VIEWS, VIOLATION_ROWS, View
from tooltrail.settings import Settings
from tooltrail.transport import Answer, Transport, UnreachableError

ROWS = 50
"""Rows shown by default."""
PAGE = 200
"""Rows per request; every list of the server allows at least this many."""
EXIT_CODES = "Exit codes: 0 success, 1 server unreachable or request rejected, 2 usage error."
_EXAMPLES = """\
examples:
  tooltrail query summary --range 7d
  tooltrail query calls tool:search state:error 'duration:>2s'
  tooltrail query calls state:error --all --json > failed.ndjson
  tooltrail query call 018fd0a2-7c1e-7d52-9b7c-5a4c3f2e1d0b
  tooltrail query traces --state failed --range 24h
  tooltrail query violations --rows --tool search

TOOLTRAIL_URL is the server's URL, TOOLTRAIL_API_KEY a key with the scope read. Payloads also need
the scope payloads."""
_STRANGE = "the response is not from a Tooltrail server"


class QueryError(Exception):
    """There is no answer to show. The message says why."""


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
            more: dict[str, Any] = {"nargs": "*"} if argument == "q" else {}
            of.add_argument(argument, metavar="TERM" if more else "ID", help=help_text, **more)
        for option in view.options:
            flag = f"--{option.replace('_', '-')}"
            of.add_argument(flag, dest=f"ask_{option}", **OPTIONS[option])
        if view.is_paged or "rows" in view.options:
            of.add_argument("--limit", type=_positive, default=ROWS, help=f"maximum rows ({ROWS})")
            of.add_argument("--all", action="store_true", help="fetch all rows, page by page")
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
        _show(transport, options)
        sys.stdout.flush()
    except QueryError as error:
        _complain(str(error))
        return 1
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
    params = {
        name.removeprefix("ask_"): value
        for name, value in vars(options).items()
        if name.startswith("ask_") and value not in (None, False, True)
    }
    if "q" in view.arguments:
        params["q"] = " ".join(options.q)
    path = view.path
    for name in view.arguments:
        path = path.replace(f"{{{name}}}", quote(str(getattr(options, name)), safe=""))
    table = Table(view.columns, _width())
    # If both streams are the same terminal, the bar would appear between the rows.
    is_seen = sys.stderr.isatty() and not sys.stdout.isatty()
    shown, bar = 0, Bar(is_shown=is_seen and view.is_paged and options.all)
    for document in _documents(transport, view, path, params, options):
        rows = document[view.rows] if view.rows else []
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
        if document.get("next") and not options.all:
            if shown >= options.limit:
                _complain(f"{shown} rows shown; use --limit N or --all for more")
            elif document.get("searched_until"):
                _complain(
                    f"searched back to {instant('searched_until')(document)} UTC;"
                    " use --all to search further"
                )
    bar.end()
    if view.rows and not shown and not options.json:
        _print("No results.")


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
        left = None if left is None else left - len(document[view.rows])


def _document(answer: Answer) -> Row:
    if answer.status != 200:
        detail = answer.document.get("detail")
        raise QueryError(tame(str(detail)) if detail else f"{_STRANGE} ({answer.status})")
    if not answer.document:
        raise QueryError(_STRANGE)
    return answer.document


def _width() -> int | None:
    """The terminal's width in cells; None if the output goes to a file or another program."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"tooltrail: {text}\n")
