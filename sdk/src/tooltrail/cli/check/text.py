"""The report of a check for people, as lines for a terminal or a log. Pure.

Tools' texts are foreign. No line begins with one, and none holds a command to the runner of a CI
system (`::…` at its beginning, `##[…]` and `##vso[…]` anywhere).
"""

import re
from collections.abc import Iterator

from tooltrail.cli.check.report import CheckedTool, Report
from tooltrail.cli.tables import tame

_LINE_MAX = 400
_COMMAND = re.compile(r"##(?=\w*\[)")


def lines(report: Report) -> Iterator[str]:
    """The report: each tool with its findings, and the totals."""
    for tool in report.tools:
        yield _heading(tool)
        for each in tool.findings:
            is_open = each.level == "error" and each.accepted is None
            mark = "✗" if is_open else "~" if each.accepted else "·"
            yield f"  {mark} {quoted(' '.join(filter(None, (each.rule, each.path))))}"
            yield f"      {quoted(each.message)}"
            if each.accepted is not None:
                yield f"      accepted until {each.accepted.until}: {quoted(each.accepted.reason)}"
            elif identity := each.id_in(tool.name):
                yield f"      id {identity}"
        yield from (f"  · policy: {quoted(one)}" for one in tool.unused)
        if tool.replay is not None:
            yield f"  · {tool.replay['calls']:,} stored calls replayed: {quoted(tool.replay_url)}"
    for note in report.notes:
        yield f"note: {quoted(note)}"
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts.items() if count)
    yield f"{len(report.tools)} tool{'' if len(report.tools) == 1 else 's'}: {counts}"


def quoted(text: str) -> str:
    """A foreign text, on one line and harmless in a terminal and a log."""
    shown = _COMMAND.sub("# #", tame(text))
    return shown if len(shown) <= _LINE_MAX else f"{shown[:_LINE_MAX]}…"


def _heading(tool: CheckedTool) -> str:
    version = tool.compared["version"]
    against = f" (version {version})" if version else ""
    effects = [
        f"{whom}: {effect}"
        for whom in ("callers", "consumers")
        if (effect := tool.compared[whom]) is not None
    ]
    return f"{tool.verdict}: {quoted(tool.name)}{against}" + "".join(f", {one}" for one in effects)
