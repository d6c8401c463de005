"""Each snippet of the guide: those for any program are run against the real server."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.utils import timezone

from audit.pages.first_steps.snippets import Snippet, snippets
from audit.pages.first_steps.views import WANTED
from audit.queries.first_steps import progress_of
from config.instance import BASE_DIR
from sdk.tests.support.mcp_client import piped, server_command
from tenants.keys import create_key
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.installation import clean_environment
from tests.support.server import LiveServer

ADAPTERS = BASE_DIR / "sdk" / "src" / "tooltrail" / "integrations"
TESTED = BASE_DIR / "sdk" / "tests" / "integrations"
SNIPPETS = {snippet.slug: snippet for snippet in snippets()}
WAIT_S = 30


def code(snippet: Snippet, language: str) -> str:
    (text,) = (text for each, text in snippet.blocks if each == language)
    return text


@pytest.fixture
def environment(acme: Cast, live_server: LiveServer, tmp_path: Path) -> dict[str, str]:
    """What the guide's first lines set, and a spool of the test's own."""
    return clean_environment(
        TOOLTRAIL_URL=live_server.url,
        TOOLTRAIL_API_KEY=create_key(acme.tenant, WANTED.name, WANTED.scopes)[1],
        TOOLTRAIL_SPOOL_DIR=str(tmp_path / "spool"),
        TOOLTRAIL_EXIT_TIMEOUT="30",
    )


def first_call(cast: Cast) -> tuple[str, str]:
    """Tool and trace of the call that arrives, as the guide would show it."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        with tenant_scope(cast.tenant.id):
            newest = progress_of(cast.admin.pk, timezone.now()).newest
        if newest is not None:
            return newest.tool_name, newest.trace_id
        time.sleep(0.1)
    raise AssertionError("no call arrived")


def run(command: list[str], environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "" or command[0] == "bash", done.stderr
    return done.stdout


@pytest.mark.slow
def test_python_snippet_sends_a_call(
    acme: Cast, environment: dict[str, str], tmp_path: Path
) -> None:
    run([sys.executable, "-c", code(SNIPPETS["python"], "python")], environment, tmp_path)
    assert first_call(acme) == ("get_weather", "first-python")
    with tenant_scope(acme.tenant.id):  # the decorated function was registered, too
        assert progress_of(acme.admin.pk, timezone.now()).has_schema


@pytest.mark.slow
def test_javascript_snippet_sends_a_call(
    acme: Cast, environment: dict[str, str], tmp_path: Path
) -> None:
    build = code(SNIPPETS["javascript"], "sh").partition(" && ")[0]
    run(["bash", "-c", build], clean_environment(), BASE_DIR)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "tooltrail").symlink_to(BASE_DIR / "sdk-js")
    (tmp_path / "first.mjs").write_text(code(SNIPPETS["javascript"], "js"))
    run(["node", "first.mjs"], environment, tmp_path)
    assert first_call(acme) == ("get_weather", "first-javascript")


@pytest.mark.slow
def test_http_snippet_sends_a_call(acme: Cast, environment: dict[str, str], tmp_path: Path) -> None:
    answer = run(["bash", "-c", code(SNIPPETS["http"], "sh")], environment, tmp_path)
    assert '"accepted": 2' in answer or '"accepted":2' in answer
    assert first_call(acme) == ("get_weather", "first-http")


@pytest.mark.slow
def test_opentelemetry_snippet_sends_a_call(
    acme: Cast, environment: dict[str, str], tmp_path: Path
) -> None:
    page = (BASE_DIR / "docs" / "frameworks" / "opentelemetry.md").read_text()
    (tmp_path / "spans.py").write_text(page.partition("```python\n")[2].partition("\n```")[0])
    lines = code(SNIPPETS["opentelemetry"], "sh")
    run(["bash", "-c", f"{lines}\nexec {sys.executable} spans.py"], environment, tmp_path)
    assert first_call(acme)[0] == "get_weather"


@pytest.mark.slow
def test_recorder_snippet_sends_a_call(acme: Cast, environment: dict[str, str]) -> None:
    *_, line = code(SNIPPETS["mcp-recorder"], "sh").splitlines()
    recorder, _, server = line.partition(" -- ")
    assert server.startswith("npx ")  # a real server; here one of our own, as it needs no network
    name, *options = recorder.split()
    command = [str(Path(sys.executable).with_name(name)), *options, "--", *server_command()]
    with piped(command, environment) as client:
        client.request(0, "initialize", {"protocolVersion": "2025-11-25"})
        client.read_line()
        assert client.call(1, city="London")["result"]["structuredContent"] == {"city": "London"}
        client.rest()
    assert first_call(acme)[0] == "echo"


@pytest.mark.parametrize(
    "adapter",
    sorted(script.parent.name for script in TESTED.glob("*/run.py")),
)
def test_every_adapter_has_a_snippet_that_uses_it(adapter: str) -> None:
    module = f"tooltrail.integrations.{adapter}"
    trees = [
        compile(
            code(each, "python"),
            each.slug,
            "exec",
            flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )
        for each in snippets()
        if each.is_framework and f"from {module} import " in code(each, "python")
    ]
    (tree,) = trees
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert imported
    assert imported <= used
    assert imported <= defined_in(adapter)


def defined_in(adapter: str) -> set[str]:
    """The public names of an adapter's module or package, without its framework."""
    path = ADAPTERS / adapter
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def test_slugs_are_unique_and_every_snippet_has_code() -> None:
    assert len(SNIPPETS) == len(snippets())
    assert list(SNIPPETS)[:5] == ["python", "javascript", "mcp-recorder", "opentelemetry", "http"]
    assert all(text.strip() for each in snippets() for _, text in each.blocks)
