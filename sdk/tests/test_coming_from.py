"""docs/coming-from.md: its examples run, its names exist, and it lists every decision."""

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from sdk.tests.guard.exemptions import REASONS
from sdk.tests.support.readme import Block, blocks, run

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
TEXT = PAGE.read_text()
NAMES = sorted(set(re.findall(r"`(tooltrail(?:\.\w+)+)`", TEXT)))


@pytest.mark.slow
@blocks(PAGE)
def test_examples_print_the_documented_output(
    block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert block.output
    run(block, monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_names_on_the_page_exist(name: str) -> None:
    resolve_name(name)


def test_every_decision_behind_an_exemption_is_explained() -> None:
    explained = {int(number) for number in re.findall(r"^(\d+)\. ", TEXT, re.MULTILINE)}
    linked = {int(number) for number in re.findall(r"\[(\d+)\]\(#decisions\)", TEXT)}
    named = {int(number) for reason in REASONS for number in re.findall(r"decision (\d+)", reason)}

    assert explained == set(range(1, 18))
    assert linked <= explained
    assert named <= explained
