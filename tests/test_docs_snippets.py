"""Each snippet of the documents is run or checked by a test, or says here why it is not.

Commands of a shell are checked here, and run by tests/acceptance/test_documented_commands.py.
"""

import configparser
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import resolve
from django.utils import timezone
from ruamel.yaml import YAML
from standardwebhooks import Webhook, WebhookVerificationError
from tooltrail.cli.main import command_parser
from tooltrail.events import ToolExecutionEnd, ToolExecutionStart

from audit.queries.call_query import Reader, parse
from sdk.tests.support.readme import Block, blocks, run
from tenants.keys import create_key
from tenants.models import Scope
from tests.support.documents import ROOT
from tests.support.factories import Cast
from tests.support.snippets import Snippet, snippet, snippets

FRAMEWORK = "tests/audit/intake/otlp/test_frameworks.py"
FIRST_STEPS = "tests/audit/pages/first_steps/test_snippets.py"
ADAPTER = "tests/audit/intake/otlp/test_framework_docs.py"
JS_ADAPTER = "tests/sdk_js/test_framework_docs.py"
_JS_ADAPTED = ("adk", "langchain", "mastra", "mcp", "openai-agents", "vercel-ai")
_ADAPTED = (
    *("agno", "autogen", "claude-agent-sdk", "crewai", "fastmcp", "google-adk", "langchain"),
    *("llama-index", "openai-agents", "pydantic-ai", "smolagents", "strands"),
)
RUN = {
    "README.md python": "tests/test_docs.py::test_readme_example_records_a_call",
    "docs/alerts.md python": "tests/test_docs_snippets.py::test_documented_receiver_of_webhooks",
    "docs/api.md yaml": "tests/audit/pages/api/test_generated_client.py::",
    "docs/check.md yaml": "tests/audit/pages/tools/test_check_workflow.py::",
    "docs/coming-from.md python": "sdk/tests/test_coming_from.py::test_examples_print",
    "docs/configuration.md yaml": "tests/audit/declared/test_applying.py::",
    "docs/first-steps.md js": f"{FIRST_STEPS}::test_javascript_snippet_sends_a_call",
    "docs/first-steps.md python": f"{FIRST_STEPS}::test_python_snippet_sends_a_call",
    "docs/frameworks/opentelemetry.md python": f"{FRAMEWORK}::test_documented_program_runs",
    "docs/frameworks/mcp.md python": f"{FRAMEWORK}::test_documented_program_runs",
    "docs/ledger.md python": "tests/audit/ledger/test_statements.py::test_documented_example",
    "docs/sampling.md python": "tests/audit/sampling/test_samples.py::test_documented_program",
    "docs/operations.md ini": "tests/config/process/test_operations_docs.py::test_systemd_drop_in",
    "docs/running.md ini": "tests/config/process/test_operations_docs.py::test_systemd_unit",
    "docs/sign-in.md yaml": "tests/tenants/identity/test_installation.py::test_documented_file",
    "docs/start/executor-author.md python": "tests/test_docs_snippets.py::test_first_steps_record",
    "sdk-js/README.md js": "tests/sdk_js/test_end_to_end.py::test_readme_example_is_shown",
    "sdk/README.md python": "sdk/tests/test_readme.py::test_examples_run",
    **{
        f"docs/frameworks/{each}.md js": f"{JS_ADAPTER}::test_page_shows_what_is_tested"
        for each in _JS_ADAPTED
    },
    **{
        f"docs/frameworks/{each}.md python": f"{ADAPTER}::test_adapter_is_documented"
        for each in _ADAPTED
    },
}
"""The test that runs a program of a document, or holds it to a script that is run."""
NOT_RUN = {
    "CONTRIBUTING.md python": "a migration of a table that does not exist",
    "docs/frameworks/mcp.md py": "the middle of a reader's own server or client",
    "docs/mcp.md python": "the client is a package of its own; tests/audit/mcp speaks its protocol",
}
PROGRAMS = {"python", "py", "js", "ini", "yaml"}
CHECKED = {"sh", "json", "ndjson", "toml", "text"}
"""What the tests below check in every document."""


def test_every_program_is_run_or_says_why_not() -> None:
    shown = {f"{each.document} {each.language}" for each in snippets() if each.language in PROGRAMS}

    assert {each.language for each in snippets()} <= PROGRAMS | CHECKED
    assert shown == RUN.keys() | NOT_RUN.keys()
    assert not RUN.keys() & NOT_RUN.keys()


@pytest.mark.parametrize("test", sorted(set(RUN.values())))
def test_named_tests_exist(test: str) -> None:
    path, _, name = test.partition("::")

    assert f"def {name}" in (ROOT / path).read_text()


def named(*languages: str) -> pytest.MarkDecorator:
    shown = snippets(*languages)
    assert shown
    return pytest.mark.parametrize("shown", [pytest.param(each, id=each.id) for each in shown])


@named("sh")
def test_shell_is_valid(shown: Snippet) -> None:
    checked = subprocess.run(
        ["bash", "-n"], input=shown.code, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def commands(code: str, program: str) -> list[list[str]]:
    """The arguments of each command that begins with this program."""
    lines = code.replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines if line.startswith(f"{program} ")]
    ends = ("|", ">", ">>", "<", "&&")
    return [
        line[1 : next((at for at, word in enumerate(line) if word in ends), None)] for line in words
    ]


@named("sh")
def test_commands_of_the_sdk_can_be_parsed(shown: Snippet) -> None:
    for arguments in commands(shown.code, "tooltrail"):
        command_parser().parse_args(arguments)


def test_commands_are_found_and_wrong_ones_refused() -> None:
    code = "tooltrail query calls a --all > x\n  tooltrail not here\ntooltrail send \\\n  - # why\n"

    assert commands(code, "tooltrail") == [["query", "calls", "a", "--all"], ["send", "-"]]
    with pytest.raises(SystemExit):
        command_parser().parse_args(["query", "nothing"])


@named("sh")
def test_requested_addresses_exist(shown: Snippet) -> None:
    for path in re.findall(r"/api/v1/[\w/%.$-]*", shown.code):
        if not path.endswith("/$1"):  # a function's parameter
            filled = re.sub(r"\$\w+", "018fd0a2-7c1e-7d52-9b7c-5a4c3f2e1d0b", path)
            resolve(filled)


@named("sh")
def test_installed_extras_exist(shown: Snippet) -> None:
    for package, extras in re.findall(r"(tooltrail(?:-server)?)\[([\w,]+)\]", shown.code):
        folder = "" if package.endswith("server") else "sdk"
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        assert set(extras.split(",")) <= project["optional-dependencies"].keys()


def _ini(text: str) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)


READERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "ndjson": lambda text: [json.loads(line) for line in text.splitlines()],
    "toml": tomllib.loads,
    "yaml": lambda text: YAML(typ="safe").load(text),
    "ini": _ini,
}


@named(*READERS)
def test_data_can_be_read(shown: Snippet) -> None:
    READERS[shown.language](shown.code)


@pytest.mark.parametrize("document", ["docs/queries.md", "docs/start/engineer.md"])
def test_shown_queries_are_valid(document: str) -> None:
    for line in snippet(document, "text").splitlines():
        assert parse(line, Reader(sees_payloads=True)).problems == (), line


@blocks(ROOT / "docs" / "start" / "executor-author.md")
def test_first_steps_record_a_call(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    started, ended = run(block, monkeypatch)

    assert isinstance(started, ToolExecutionStart)
    assert isinstance(ended, ToolExecutionEnd)
    assert (started.tool_name, started.trace_id) == ("measure_temperature", "first-steps")
    assert ended.output["data"] == 22.5


SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_documented_receiver_of_webhooks_verifies_and_refuses() -> None:
    now, body = timezone.now(), '{"type": "alert"}'
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET).sign("msg_1", now, body),
    }
    code = snippet("docs/alerts.md", "python").replace("whsec_…", SECRET)
    names: dict[str, Any] = {"body": body, "headers": headers}
    exec(code, names)
    assert names["event"] == {"type": "alert"}

    with pytest.raises(WebhookVerificationError):
        exec(code, {"body": body.replace("alert", "other"), "headers": headers})


def api(cast: Cast, path: str, document: object) -> tuple[int, Any]:
    """Send JSON as a key that may do everything."""
    scopes = [Scope.ADMIN, Scope.OPERATE, Scope.READ, Scope.INGEST]
    key = create_key(cast.tenant, "docs", scopes, created_by=cast.admin)[1]
    answer = Client().put(
        f"/api/v1/{path}",
        data=json.dumps(document),
        content_type="application/json",
        headers={"authorization": f"Bearer {key}"},
    )
    return answer.status_code, answer.json()


def test_api_accepts_documented_alert_rules_and_windows(acme: Cast) -> None:
    (sent,) = commands(snippet("docs/alerts.md", "sh"), "curl")
    channel = json.loads(sent[sent.index("--json") + 1].replace("whsec_…", SECRET))
    assert api(acme, "channels/on%20call", channel)[0] in (200, 201)
    rules = json.loads(snippet("docs/alert-rules.md", "json", 1))
    slow = {"name": "search is slow", "condition": {"on": "event", "event": "inbox_waiting"}}
    windows = json.loads(snippet("docs/alert-rules.md", "json", 2))
    windows["windows"][0]["starts_at"] = (timezone.now() + timedelta(days=1)).isoformat()

    assert api(acme, "alert-rules", {"rules": [*rules["rules"], slow]})[0] == 200
    assert api(acme, "maintenance-windows", windows)[0] == 200


def test_api_accepts_the_documented_price_list(acme: Cast) -> None:
    status, answer = api(
        acme, "price-lists/2026-11-01", json.loads(snippet("docs/costs.md", "json"))
    )

    assert status in (200, 201), answer


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_server_accepts_each_documented_event(acme: Cast, number: int) -> None:
    lines = [json.loads(line) for line in snippet("docs/events.md", "ndjson", number).splitlines()]
    times = [name for name in ("ended_at", "decided_at", "seen_at") if name in lines[-1]]
    # The page's day will be too long ago for the index some day.
    moved = timezone.now() - datetime.fromisoformat(lines[-1][times[0]])
    for line in lines:
        for name in line.keys() & {"started_at", "ended_at", "decided_at", "seen_at"}:
            line[name] = (datetime.fromisoformat(line[name]) + moved).isoformat()
    key = create_key(acme.tenant, "docs", [Scope.INGEST], created_by=acme.admin)[1]

    answer = (
        Client()
        .post(
            "/api/v1/events",
            data="\n".join(map(json.dumps, lines)),
            content_type="application/x-ndjson",
            headers={"authorization": f"Bearer {key}"},
        )
        .json()
    )

    assert (answer["accepted"], answer["rejected"]) == (len(lines), [])
