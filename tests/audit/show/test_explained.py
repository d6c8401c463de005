"""Each page's link to the documentation leads to a heading that exists."""

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from audit.show.explained import EXPLAINED, explanation
from audit.show.navigation import HELP, PAGES
from docs.site.contents import ROOT, address, documents
from tests.support.factories import Cast

FILES = {address(name): path for path, name in documents().items()}


def _route_names(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from _route_names(each.url_patterns)
        elif each.name:
            yield each.name


def anchors(text: str) -> set[str]:
    """The names of a document's headings, as a forge and the site make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("target", sorted(set(EXPLAINED.values())))
def test_target_is_a_heading_of_a_document(target: str) -> None:
    page, _, anchor = target.partition("#")

    assert not anchor or anchor in anchors((ROOT / FILES[page]).read_text())


def test_every_page_of_the_navigation_is_explained() -> None:
    pages = {each.route for each in PAGES if each not in HELP}

    assert pages - EXPLAINED.keys() == set()


def test_only_existing_routes_are_explained() -> None:
    assert EXPLAINED.keys() - set(_route_names(get_resolver().url_patterns)) == set()


def test_page_links_to_what_explains_it(acme: Cast) -> None:
    client = Client()
    client.force_login(acme.admin)

    calls = client.get("/calls/").content.decode()
    ledger = client.get("/ledger/").content.decode()

    assert 'href="/docs/queries/">Help on this page<' in calls
    assert 'href="/docs/ledger/">Help on this page<' in ledger


def test_other_pages_link_to_the_whole_documentation() -> None:
    assert explanation("no_such_route") == explanation(None) == "/docs/"
