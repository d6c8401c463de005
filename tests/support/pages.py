"""Opening pages in tests: signed in, complete or as a fragment, with a count of statements."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from re import sub

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tenants.models import User

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a\u202eb",
    "nul\x00",
    "{{ x }}",
]
PARTIAL = {"HX-Request": "true"}
FRAME = 10
"""Statements of every page: session, user, memberships (4), scope (3), the navigation's numbers."""


def signed_in(user: User) -> Client:
    """A browser without JavaScript that this user has signed in with."""
    client = Client()
    client.force_login(user)
    return client


def walked(client: Client, folder: str, query: str) -> list[str]:
    """The pages of a list from the first to the last, by their links to the next one."""
    pages, address = list[str](), f"{folder}{query}"
    while address:
        pages.append(client.get(address).content.decode())
        link = linked(pages[-1], "next")
        address = f"{folder}{link}" if link else ""
    return pages


def linked(page: str, rel: str) -> str | None:
    """Where a page's link to the next (`next`) or the one before (`prev`) leads."""
    link = re.search(rf'rel="{rel}" href="([^"]*)"', page)
    return unescape(link[1]) if link else None


def text(markup: str) -> str:
    """What a reader sees of a page, with white space as single spaces."""
    return " ".join(unescape(sub(r"<[^>]*>", " ", markup)).split())


@contextmanager
def statements(expected: int) -> Iterator[None]:
    """The block must run exactly this many SQL statements; a difference prints them.

    The setting by which prepared statements are planned once does not count: a cluster has none.
    """
    with CaptureQueriesContext(connection) as captured:
        yield
    sent = [query["sql"][:200] for query in captured.captured_queries]
    sent = [sql for sql in sent if "SET LOCAL plan_cache_mode" not in sql]
    assert len(sent) == expected, "\n".join(sent)


def listed_tools(page: str) -> list[str]:
    """The tools of the calls in a list, in its order. For tests with one call for each tool."""
    return re.findall(r'<td class="which"><a [^>]*title="([^"]*)"', page)
