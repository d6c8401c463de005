"""The message as text, for people."""

from collections.abc import Mapping
from typing import Any


def plain(message: Mapping[str, Any]) -> str:
    """The message in lines: its text, a line for each fact, and the address to look at."""
    lines = [message["text"], *_facts(message), message["url"]]
    return "\n\n".join(line for line in lines if line) + "\n"


def _facts(message: Mapping[str, Any]) -> list[str]:
    facts = [f"{name}: {value}" for name, value in message["facts"].items() if value is not None]
    return ["\n".join(facts)] if facts else []


def slack_text(message: Mapping[str, Any]) -> str:
    """The message in Slack's mrkdwn. Its own characters are escaped: names are of others."""
    title = f"*{_escaped(message['title'])}*"
    link = f"<{message['url']}|Open in Tooltrail>" if "://" in message["url"] else ""
    lines = [title, _escaped(message["text"]), *map(_escaped, _facts(message)), link]
    return "\n".join(line for line in lines if line)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
