"""The examples of the top-level documents work as shown."""

import re
from pathlib import Path
from typing import get_args

import pytest
from tooltrail.events import (
    Decision,
    Gap,
    ToolCallDecision,
    ToolExecutionEnd,
    ToolExecutionStart,
)

from audit.events.limits import (
    MAX_COMPRESSED_BYTES,
    MAX_DEPTH,
    MAX_INFLATED_BYTES,
    MAX_LINES,
    MAX_RATIO,
)
from config.openapi import description
from sdk.tests.support.readme import Block, blocks, run
from tenants.models import Scope
from tests.support.documents import DOCUMENTS, ROOT

EVENTS = (ROOT / "docs" / "events.md").read_text()


@blocks(ROOT / "README.md")
def test_readme_example_records_a_call(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [type(event) for event in run(block, monkeypatch)]

    assert kinds.count(ToolExecutionStart) == kinds.count(ToolExecutionEnd) == 1


ONLY_SHOWN = {"context", "model_usage"}
"""Members that the contract's models ignore: the server reads them from the line as it came."""


def test_contract_page_names_every_member_and_no_other() -> None:
    table = EVENTS.partition("## Members")[2].partition("## Answers")[0]
    documented = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }

    modelled = {*ToolExecutionStart.model_fields, *ToolExecutionEnd.model_fields}
    assert documented == modelled | ONLY_SHOWN
    for name in Gap.model_fields.keys() - {"type", "event_id"}:
        assert f"`{name}`" in table
    of_decisions = EVENTS.partition("## Decisions")[2]
    for name in ToolCallDecision.model_fields.keys() - ToolExecutionStart.model_fields.keys():
        assert f"`{name}`" in of_decisions
    assert all(f"`{decision}`" in of_decisions for decision in get_args(Decision))


def test_contract_page_states_the_current_limits() -> None:
    stated = (
        f"{MAX_COMPRESSED_BYTES >> 20} MiB as sent, {MAX_INFLATED_BYTES >> 20} MiB inflated"
        f" (at most {MAX_RATIO} times as sent), {MAX_LINES:,} lines, 1 MiB a line,"
        f" {MAX_DEPTH} levels"
    )

    assert stated in EVENTS


@pytest.mark.slow
def test_api_page_names_every_read_operation() -> None:
    page = (ROOT / "docs" / "api.md").read_text().partition("## Acts")[0]
    table = page.partition("| --- |")[2]
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", row)
    }
    paths = {
        path.removeprefix("/api/v1/")
        for path, methods in description()["paths"].items()
        if "get" in methods
    }

    assert named == paths


def test_api_page_names_every_scope() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    assert [scope for scope in Scope.values if f"`{scope}`" not in page] == []


def test_pre_commit_runs_the_first_step_of_ci() -> None:
    steps = re.findall(r'^step "[^"]+"\n(\S+)', (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    entry = re.search(r"entry: (.+)", (ROOT / ".pre-commit-config.yaml").read_text())

    assert entry is not None
    assert entry[1] == steps[0] == ".ci/lint"


def test_adr_index_lists_every_decision_in_order() -> None:
    folder = ROOT / "docs" / "adr"
    row = re.compile(r"^\| \[(\d+)\]\(([^)]+)\) \| (.+?) \|", re.MULTILINE)
    listed = row.findall((folder / "README.md").read_text())
    records = sorted(path.name for path in folder.glob("0*.md"))

    assert [name for _, name, _ in listed] == records
    for number, name, title in listed:
        text = (folder / name).read_text()
        assert text.startswith(f"# {number}. {title}\n")
        assert name.startswith(f"{number:0>4}-")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Reasons", "Figures", "Consequences"], name


def test_architecture_page_names_existing_files_and_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|sql|html))`", text)
    storeys = text.partition("### The storeys")[2].partition("### What may")[0]
    placed = set(re.findall(r"`(\w+)/", storeys)) - {"audit"}
    folders = {path.parent.name for path in (ROOT / "audit").glob("*/__init__.py")}

    assert [path for path in named if not (ROOT / path).exists()] == []
    assert placed == folders | {"migrations"}


def test_benchmark_page_names_every_script() -> None:
    text = (ROOT / "bench" / "README.md").read_text()

    for script in (ROOT / "bench").glob("*.py"):
        assert f"`{script.name}`" in text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_resolve(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())

    missing = [link for link in links if not (document.parent / link).exists()]

    assert missing == []
