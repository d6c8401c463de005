"""What the build makes: nothing inline, nothing from elsewhere, nothing of this machine."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import pytest
from tooltrail.events import (
    Gap,
    ToolCallDecision,
    ToolDefinitions,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from tooltrail.ledger.leaf import Kind

from audit.intake.metrics import FAMILIES
from audit.queries.filter_names import FILTER_NAMES
from audit.show.explained import EXPLAINED
from config.instance import BASE_DIR
from config.openapi import description
from docs.site.contents import address, documents

pytestmark = pytest.mark.slow

MAX_BYTES = 12 << 20
MAX_FILE_BYTES = 1 << 20


class Read(HTMLParser):
    """What matters here of a page: ids, addresses, and what the policy would refuse."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.refused: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.add(given.get("id", ""))
        handlers = [name for name in given if name == "style" or name.startswith("on")]
        if handlers or tag == "style" or (tag == "script" and "src" not in given):
            self.refused.append(self.get_starttag_text() or tag)
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif "src" in given or tag == "link":
            self.loaded.append(given.get("src") or given.get("href", ""))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Read]:
    return {page: Read(page) for page in sorted(site.rglob("*.html"))}


def test_every_document_is_a_page(site: Path) -> None:
    for name in documents().values():
        assert (site / address(name) / "index.html").exists(), name


def test_nothing_needs_a_weaker_policy_or_another_server(pages: dict[Path, Read]) -> None:
    assert {page.name: read.refused for page, read in pages.items() if read.refused} == {}
    for page, read in pages.items():
        assert read.loaded
        elsewhere = [each for each in read.loaded if urlsplit(each).netloc]
        assert not elsewhere, (page, elsewhere)


def test_style_sheets_load_nothing_from_elsewhere(site: Path) -> None:
    named = re.compile(r"""(?:url\(|@import)\s*["']?([^)"',]+)""")
    for sheet in site.rglob("*.css"):
        addresses = named.findall(sheet.read_text())
        assert not [each for each in addresses if "//" in each], sheet


def test_links_anchors_and_files_exist(site: Path, pages: dict[Path, Read]) -> None:
    checked = 0
    for page, read in pages.items():
        for link in (*read.links, *read.loaded):
            address, anchor = urldefrag(link)
            if urlsplit(address).scheme:
                continue
            path = urlsplit(address).path
            aim = (page.parent / path).resolve() if path else page
            if aim == site.parent.resolve():  # the product, at the address above
                continue
            aim = aim / "index.html" if aim.is_dir() else aim
            assert aim.is_relative_to(site.resolve()), (page, link)
            assert aim.exists(), (page, link)
            if anchor and aim.suffix == ".html":
                assert anchor in pages[site / aim.relative_to(site.resolve())].ids, (page, link)
            checked += 1
    assert checked > 1000


def test_explanations_of_pages_have_their_headings(site: Path, pages: dict[Path, Read]) -> None:
    for target in EXPLAINED.values():
        page, _, anchor = target.partition("#")
        assert not anchor or anchor in pages[site / page / "index.html"].ids, target


def test_reference_is_complete(site: Path) -> None:
    api = (site / "reference" / "api" / "index.html").read_text()
    for path, methods in description()["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}\n" in api
    metrics = (site / "reference" / "metrics" / "index.html").read_text()
    assert [name for name in FAMILIES if name not in metrics] == []
    commands = (site / "reference" / "commands" / "index.html").read_text()
    events = (site / "reference" / "events" / "index.html").read_text()
    for event in (ToolExecutionStart, ToolExecutionEnd, ToolCallDecision, ToolDefinitions, Gap):
        assert [name for name in event.model_fields if f">{name}<" not in events] == []
    queries = (site / "reference" / "queries" / "index.html").read_text()
    assert [name for name in FILTER_NAMES if f">{name}:<" not in queries] == []
    ledger = (site / "reference" / "ledger" / "index.html").read_text()
    assert [kind.name for kind in Kind if f">{kind.name}<" not in ledger] == []
    for usage in ("manage.py up [-h]", "manage.py tenant create", "tooltrail query calls"):
        assert f"usage: {usage}" in commands
    # The databases of who built it, here of the test session, would make it differ.
    assert "--database {default}" in commands


def test_files_name_nothing_of_this_machine_and_are_small(site: Path) -> None:
    files = [file for file in site.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < MAX_BYTES
    for file in files:
        assert file.stat().st_size < MAX_FILE_BYTES, file
        content = file.read_bytes()
        assert str(BASE_DIR).encode() not in content, file
        assert str(Path.home()).encode() + b"/" not in content, file
