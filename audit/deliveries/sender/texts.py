"""The message as text, for people."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

_LINES: Final = {"condition": "Condition", "query": "Calls", "from": "Held from", "to": "Held to"}
"""The facts that people read. The title says the figures."""


def plain(message: Mapping[str, Any]) -> str:
    """The message in lines: text, facts, and the address to look at."""
    lines = [message["text"], *_facts(message), message["url"]]
    return "\n\n".join(line for line in lines if line) + "\n"


def _facts(message: Mapping[str, Any]) -> list[str]:
    facts = message["facts"]
    lines = [
        f"{label}: {_minute(facts[name]) if name in ('from', 'to') else facts[name]}"
        for name, label in _LINES.items()
        if facts.get(name) is not None
    ]
    return ["\n".join(lines)] if lines else []


def _minute(instant: str) -> str:
    return f"{datetime.fromisoformat(instant):%Y-%m-%d %H:%M} UTC"


def slack_text(message: Mapping[str, Any]) -> str:
    """The message in Slack's mrkdwn. Its own characters are escaped: names are of others."""
    title = f"*{_escaped(message['title'])}*"
    link = f"<{message['url']}|Open in Tooltrail>" if "://" in message["url"] else ""
    lines = [title, _escaped(message["text"]), *map(_escaped, _facts(message)), link]
    return "\n".join(line for line in lines if line)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
