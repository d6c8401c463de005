"""The `tooltrail` command: the spool, queries, checks, evidence, witnesses, MCP, completion.

The verbs are in modules of their own. The API key comes from the environment only, because every
user of a machine can read command lines.
"""

import argparse
import logging
import sys
from collections.abc import Sequence

from tooltrail.cli import completion, mcp, query, spool, verify, verify_record, watch, witness
from tooltrail.cli.check import command as check
from tooltrail.version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    options = command_parser().parse_args(argv)
    try:
        code: int = options.run(options)
    except KeyboardInterrupt:
        return spool.INTERRUPTED
    return code


def command_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="tooltrail",
        description="Show and send the events waiting on this machine, query the server, "
        "check changed tools, verify that its ledger was not altered, and record MCP servers.",
        epilog=spool.EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"tooltrail {__version__}")
    verbs = parser.add_subparsers(required=True, title="commands", metavar="<command>")
    spool.add_parsers(verbs)
    query.add_parser(verbs)
    check.add_parser(verbs)
    verify.add_parser(verbs)
    verify_record.add_parser(verbs)
    watch.add_parser(verbs)
    witness.add_parser(verbs)
    mcp.add_parser(verbs)
    completion.add_parser(verbs, parser)
    return parser
