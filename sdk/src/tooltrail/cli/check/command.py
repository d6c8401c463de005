"""The command line of `tooltrail check`: its options, its output, its exit codes."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tooltrail.cli.bar import Bar
from tooltrail.cli.check import junit, mcp_servers, modules, sarif, text
from tooltrail.cli.check.definitions import CheckError, Definition, is_yaml, read_file
from tooltrail.cli.check.judging import Judging, Options, Progress
from tooltrail.cli.check.policy import Policy, document_of, entries_for, read_day, read_policy
from tooltrail.cli.check.report import Report
from tooltrail.settings import Settings
from tooltrail.transport import Transport, UnreachableError

CANNOT_CHECK = 2
_TIMEOUT_SECONDS = 600.0
_EPILOG = """\
examples:
  tooltrail check tools.json
  tooltrail check tools.json more.yaml --range 30d --json
  tooltrail check --module pkg.tools --sarif check.sarif --junit check.xml
  tooltrail check --mcp http://127.0.0.1:8080/mcp
  tooltrail check --mcp-command -- python server.py
  tooltrail check tools.json --policy check-policy.json
  tooltrail check tools.json --policy check-policy.json --accept 0123456789abcdef \\
      --reason "Both callers are changed (#812)." --until 2026-12-31

TOOLTRAIL_URL is the server's URL, TOOLTRAIL_API_KEY a key with the scope read, and for replays the
scope registry. MCP_AUTHORIZATION is sent to the servers of --mcp as the header Authorization.

Exit codes: 0 nobody breaks, or the policy accepts it, 1 callers or consumers break or may break,
2 could not check: wrong usage, no server, no rights, a replay that did not end, a regression set
that the policy requires and that is not there, and with --require-published a tool that is not
published.
"""


def add_parser(verbs: Any) -> None:
    """Add `check` to the command line."""
    parser = verbs.add_parser(
        "check",
        help="check in CI whether changed tools break callers or consumers",
        description="Compare definitions of tools with the published ones, and replay stored calls "
        "against them, on the server. Nothing is published.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="definitions: of OpenAI, Anthropic, MCP, or an export of the registry; JSON or YAML",
    )
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="MODULE",
        help="a Python module with tools: what trail.tool decorates, and Tool objects; is imported",
    )
    parser.add_argument(
        "--mcp", action="append", default=[], metavar="URL", help="a running MCP server"
    )
    parser.add_argument(
        "--mcp-command",
        action="store_true",
        help="start an MCP server: its command follows after --, instead of files",
    )
    parser.add_argument(
        "--range", default="7d", help="how far back stored calls are replayed (7d)", metavar="RANGE"
    )
    parser.add_argument(
        "--limit",
        type=_positive,
        default=10_000,
        metavar="CALLS",
        help="maximum of calls replayed of each tool, the newest (10000)",
    )
    parser.add_argument("--no-replay", action="store_true", help="only compare the definitions")
    parser.add_argument(
        "--require-published",
        action="store_true",
        help="tools that the server does not know end with exit code 2",
    )
    parser.add_argument(
        "--policy",
        metavar="FILE",
        help="what is accepted, and which regression sets are required; JSON or YAML",
    )
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="ID",
        help="accept the break with this id: it is added to the file of --policy",
    )
    parser.add_argument("--reason", default="", help="why it is accepted", metavar="TEXT")
    parser.add_argument(
        "--until", default="", help="the last day on which it is accepted", metavar="DAY"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=_TIMEOUT_SECONDS,
        metavar="SECONDS",
        help=f"how long the check may take ({_TIMEOUT_SECONDS:.0f})",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    for form, kind in (("sarif", "SARIF 2.1.0"), ("junit", "JUnit XML")):
        parser.add_argument(
            f"--{form}", metavar="FILE", help=f"write the report as {kind}; - prints it instead"
        )
    parser.add_argument("--url", help="the server's URL (TOOLTRAIL_URL)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check the definitions and print the report. Returns the exit code."""
    if [options.json, options.sarif == "-", options.junit == "-"].count(True) > 1:
        return _complain("only one report fits standard output")
    settings = Settings.resolve(url=options.url)
    if not settings.url or not settings.api_key:
        return _complain("set TOOLTRAIL_URL and TOOLTRAIL_API_KEY")
    deadline = time.monotonic() + options.timeout
    transport = Transport(settings.url, settings.api_key, f"tooltrail-check/{version('tooltrail')}")
    is_terminal = sys.stderr.isatty()
    bar = Bar(is_shown=is_terminal)
    try:
        policy = _policy(options)
        definitions = _definitions(options, deadline)
        progress = _progress(bar, is_terminal=is_terminal)
        rules = _options(options, policy)
        judging = Judging(transport, settings.url, rules, deadline, progress)
        report = judging.check(definitions)
        bar.erase()
        if options.accept:
            policy = _accept(report, policy, options)
        policy.apply(report.tools, _today())
        try:
            _print(report, options)
        except BrokenPipeError:  # the reader has closed the pipe, such as `head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except CheckError as error:
        return _complain(str(error))
    except UnreachableError as error:
        return _complain(f"{settings.url} cannot be reached ({error})")
    finally:
        bar.erase()
        transport.close()
    return report.exit_code


def _definitions(options: argparse.Namespace, deadline: float) -> Sequence[Definition]:
    definitions: list[Definition] = []
    if options.mcp_command:
        if not options.files:
            raise CheckError("give the server's command after --mcp-command --")
        definitions += mcp_servers.list_of_command(options.files, deadline)
    else:
        definitions += [each for name in options.files for each in read_file(Path(name))]
    for url in options.mcp:
        definitions += mcp_servers.list_of_url(url, deadline)
    for name in options.module:
        definitions += modules.read_module(name)
    if not definitions:
        raise CheckError("give a file of definitions, --module, --mcp or --mcp-command")
    return definitions


def _policy(options: argparse.Namespace) -> Policy:
    """The policy of the file. Raises CheckError."""
    if options.accept:
        if not (options.policy and options.reason.strip() and options.until):
            raise CheckError("--accept needs --policy, --reason and --until")
        if is_yaml(Path(options.policy)):
            raise CheckError(f"{options.policy}: --accept writes JSON: add the entry by hand")
        if read_day(options.until, "--until") < _today():
            raise CheckError("--until is over")
        if not Path(options.policy).exists():
            return Policy()
    elif options.reason or options.until:
        raise CheckError("--reason and --until are for --accept")
    return read_policy(Path(options.policy)) if options.policy else Policy()


def _accept(report: Report, policy: Policy, options: argparse.Namespace) -> Policy:
    """Add the breaks that are accepted to the file, and return the policy with them."""
    until = read_day(options.until, "--until")
    made = entries_for(report.tools, options.accept, options.reason.strip(), until)
    ids = {one.id for one in made}
    kept = [one for one in policy.accepted if one.id not in ids]
    policy = replace(policy, accepted=[*kept, *made])
    text = json.dumps(document_of(policy), indent=2, ensure_ascii=False) + "\n"
    try:
        Path(options.policy).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CheckError(f"{options.policy}: {error.strerror}") from None
    read_policy(Path(options.policy))
    return policy


def _today() -> date:
    return datetime.now(UTC).date()


def _options(options: argparse.Namespace, policy: Policy) -> Options:
    return Options(
        range=options.range,
        limit=options.limit,
        replays=not options.no_replay,
        require_published=options.require_published,
        required_sets=policy.required,
    )


def _progress(bar: Bar, *, is_terminal: bool) -> Progress:
    """Show a bar on a terminal, and in a log a line when a replay is waited for."""
    waited_for: set[str] = set()

    def show(name: str, read: int, of: int | None) -> None:
        if not is_terminal:
            if name not in waited_for:
                waited_for.add(name)
                sys.stderr.write(f"tooltrail: calls of {text.quoted(name)} are replayed\n")
                sys.stderr.flush()
        elif of:
            bar.erase()
            bar.draw(read / of, f"{read:,} of {of:,} calls of {text.quoted(name)[:40]}")
        else:
            bar.draw_text(f"waiting for the replay of {text.quoted(name)[:40]}")

    return show


def _print(report: Report, options: argparse.Namespace) -> None:
    """Write the files, and one form to standard output. Raises CheckError."""
    is_printed = False
    for name, make in ((options.sarif, _sarif), (options.junit, junit.document)):
        if name == "-":
            sys.stdout.write(make(report).decode())
            is_printed = True
        elif name:
            try:
                Path(name).write_bytes(make(report))
            except OSError as error:
                raise CheckError(f"{name}: {error.strerror}") from None
    if options.json:
        sys.stdout.write(json.dumps(report.document(), indent=2) + "\n")
    elif not is_printed:
        sys.stdout.write("".join(f"{line}\n" for line in text.lines(report)))
    sys.stdout.flush()


def _sarif(report: Report) -> bytes:
    return json.dumps(sarif.document(report), indent=2).encode() + b"\n"


def _positive(given: str) -> int:
    if not given.isascii() or not given.isdecimal() or int(given) < 1:
        raise argparse.ArgumentTypeError("must be a whole number, 1 or more")
    return int(given)


def _seconds(given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = 0
    if not 0 < number <= 86_400:
        raise argparse.ArgumentTypeError("must be a number of seconds, up to 86400")
    return number


def _complain(reason: str) -> int:
    sys.stderr.write(f"tooltrail: {text.quoted(reason)}\n")
    return CANNOT_CHECK
