"""docs/frameworks agrees with the code and with the scripts that the tests run."""

import re
from pathlib import Path

import pytest

from audit.events.limits import MAX_COMPRESSED_BYTES, MAX_INFLATED_BYTES
from audit.events.spans import MAX_SPANS
from audit.intake.otlp.conventions import CONTEXT, CONVENTIONS, MAPPING_VERSION
from tests.support.otlp.environment import FRAMEWORKS

PAGES = Path(__file__).resolve().parents[4] / "docs" / "frameworks"
OVERVIEW = (PAGES / "README.md").read_text()


def test_convention_table_matches_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", OVERVIEW, re.MULTILINE)

    assert [name for name, _ in rows] == [convention.name for convention in CONVENTIONS]
    for (_, cells), convention in zip(rows, CONVENTIONS, strict=True):
        mark, *columns = ([*re.findall(r"`([^`]+)`", cell)] for cell in cells.split("|"))
        assert mark[: len(convention.mark)] == list(filter(None, convention.mark)) or (
            mark == [convention.mark[1], convention.tool_name[0]]
        )
        assert [tuple(column) for column in columns] == [
            convention.tool_name,
            convention.tool_call_id,
            convention.arguments,
            convention.result,
        ]


def test_context_attributes_match_the_code() -> None:
    for member in ("agent", "conversation", "model"):
        for attribute in CONTEXT[member]:
            assert f"`{attribute}`" in OVERVIEW or attribute == "model_name"
    assert f'"mapping_version": {MAPPING_VERSION}' in OVERVIEW


def test_documented_limits_match_the_code() -> None:
    stated = (
        f"{MAX_COMPRESSED_BYTES >> 20} MiB as sent, {MAX_INFLATED_BYTES >> 20} MiB inflated,"
        f" or {MAX_SPANS:,} spans"
    )
    assert stated in OVERVIEW


@pytest.mark.parametrize(
    "page", sorted({path.name for path in PAGES.glob("*.md")} - {"measured.md"})
)
def test_every_framework_page_names_the_environment_variables(page: str) -> None:
    text = (PAGES / page).read_text()
    if "OTEL_" not in text:
        adapters = ("tooltrail.integrations.", 'from "tooltrail/')
        assert any(each in text for each in adapters), "neither OpenTelemetry nor an adapter"
        return

    assert 'OTEL_EXPORTER_OTLP_ENDPOINT="$TOOLTRAIL_URL"' in text
    assert 'OTEL_EXPORTER_OTLP_HEADERS="x-api-key=$TOOLTRAIL_API_KEY"' in text


def test_documented_mcp_middleware_matches_the_tested_script() -> None:
    run = (FRAMEWORKS / "mcp_client_server.py").read_text()
    shown, _ = re.findall(r"```python\n(.*?)```", (PAGES / "mcp.md").read_text(), re.DOTALL)
    (middleware,) = re.findall(r"^async def with_content.*?^    return result$", shown, re.M | re.S)

    assert middleware in run
    assert "server._lowlevel_server.middleware.append(with_content)" in shown
    assert "server._lowlevel_server.middleware.append(with_content)" in run


ADAPTERS = Path(__file__).resolve().parents[4] / "sdk" / "tests" / "integrations"


@pytest.mark.parametrize("adapter", sorted(each.parent.name for each in ADAPTERS.glob("*/run.py")))
def test_adapter_is_documented_as_its_tested_script_uses_it(adapter: str) -> None:
    page = adapter.replace("_", "-") + ".md"
    text = (PAGES / page).read_text()
    scripts = "".join(each.read_text() for each in sorted((ADAPTERS / adapter).glob("*.py")))
    shown = re.findall(rf"^from tooltrail\.integrations\.{adapter} import \w+$", text, re.MULTILINE)
    pins = (ADAPTERS / adapter / "requirements.txt").read_text().split()

    assert shown
    for line in shown:
        assert line in scripts
        assert line.rpartition(" ")[2] + "(" in text
    assert any(pin.replace("==", " ") in text for pin in pins), f"{page} names no tested version"
    assert f"]({page})" in OVERVIEW
