"""The commands that documents show are run by a shell, on an installation with a few calls.

Names of the documents that stand for a reader's own (hosts, keys, files, ids of tools) are replaced
by real ones. A line that runs until somebody ends it is ended after some seconds.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.utils.crypto import get_random_string

from config.instance import BASE_DIR
from tests.support.installation import announcement, clean_environment, prepared_installation
from tests.support.snippets import snippet

pytestmark = [pytest.mark.slow, pytest.mark.sampled("documented commands", 1)]

CONTRACT = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    "output_schema": {"type": "object", "required": ["celsius"]},
}
PRELUDE = f"""
set -eu
uv() {{
  while [ "$1" != manage.py ]; do shift; done
  shift
  "{sys.executable}" "{BASE_DIR}/manage.py" "$@"
}}
"""
"""`uv run` would first bring the environment of the tests up to date."""
GET = 'curl -sf -H "Authorization: Bearer $TOOLTRAIL_API_KEY" '
FOR_EVER = (" --follow", "tooltrail watch ", "tooltrail witness ")


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who follows the documents in a folder of their own."""

    folder: Path
    environment: dict[str, str]

    def run(self, code: str) -> str:
        """Run lines of a shell. All must succeed."""
        done = subprocess.run(
            ["bash", "-c", PRELUDE + code],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def follow(self, document: str, *numbers: int, **replaced: str) -> str:
        """Run these blocks of a document. `replaced` are texts by the name of a line's words."""
        code = "\n".join(snippet(document, "sh", number) for number in numbers)
        code = code.replace("\\\n", " ")
        for before, after in replaced.items():
            assert before in code, before
            code = code.replace(before, after)
        return self.run("\n".join(filter(None, map(self._line, code.splitlines()))))

    def _line(self, line: str) -> str:
        if line.startswith(("pip install", "export TOOLTRAIL_")):
            return ""
        line = line.replace("https://tooltrail.example", self.environment["TOOLTRAIL_URL"])
        if any(each in line for each in FOR_EVER):
            command = line.partition("#")[0]
            return f"timeout 5 {command} || [ $? = 124 ] || [ $? = 130 ]"
        return line


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """An installation with the tenant, the person and the key that docs/running.md creates."""
    folder = tmp_path_factory.mktemp("reader")
    with prepared_installation() as installation:
        process = installation.up("--json")
        url = announcement(process)["url"]
        environment = clean_environment(
            PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin",
            HOME=str(folder),
            TOOLTRAIL_VAR=str(installation.var),
            TOOLTRAIL_URL=url,
        )
        one = Reader(folder, environment)
        password = get_random_string(20)
        one.follow(
            "docs/running.md",
            3,
            **{
                "check --deploy": "check",  # hosts and HTTPS are not set
                "changepassword ada ": f"changepassword ada --stdin <<< {password} ",
            },
        )
        scopes = ("ingest", "read", "payloads", "registry", "operate", "admin")
        wanted = " ".join(f"--scope {each}" for each in scopes)
        environment["TOOLTRAIL_API_KEY"] = json.loads(
            one.run(f"uv run manage.py key create acme --name all --owner ada --json {wanted}")
        )["key"]
        _register(one)
        today = datetime.now(UTC).date().isoformat()
        events = snippet("docs/events.md", "ndjson").replace("2026-11-20", today)
        (folder / "events.ndjson").write_text(events)
        assert '"accepted":2' in one.follow("docs/events.md", 1).replace(" ", "")
        tools = json.loads(one.run(GET + '"$TOOLTRAIL_URL/api/v1/tools"'))["items"]
        environment["TOOL"] = tools[0]["id"]
        yield one


def _register(one: Reader) -> None:
    """Publish two versions of a tool, the second one by a file of docs/registry.md's story."""
    for number, description in enumerate(("The weather.", CONTRACT["description"])):
        contract = CONTRACT | {"description": description}
        (one.folder / "tools.json").write_text(json.dumps([contract]))
        one.run(
            "uv run manage.py registry import acme tools.json --publish"
            f" --reason 'Version {number + 1}.'"
        )


def test_api(reader: Reader) -> None:
    reader.follow("docs/api.md", 1, 2)
    assert (reader.folder / "failed.ndjson").read_text() == ""
    assert reader.follow("docs/api.md", 4).startswith("tt_")


def test_gate_of_a_draft(reader: Reader) -> None:
    contract = CONTRACT | {"description": "A draft."}
    (reader.folder / "draft.json").write_text(json.dumps([contract]))
    reader.run("uv run manage.py registry import acme draft.json")
    reader.follow("docs/api.md", 3)
    assert "true" in (reader.folder / "verdict").read_text()


def test_registry(reader: Reader) -> None:
    assert reader.follow("docs/registry.md", 1) == "1 unchanged\n1 unchanged\n"
    assert "get_weather" in (reader.folder / "registry.json").read_text()


def test_evidence(reader: Reader) -> None:
    reader.run(
        f'until {GET} "$TOOLTRAIL_URL/api/v1/ledger/checkpoint" -o kept.txt; do sleep 1; done'
    )
    size = (reader.folder / "kept.txt").read_text().splitlines()[1]
    month = datetime.now(UTC).strftime("%Y-%m")
    reader.follow("docs/evidence.md", 1, **{"2026-11": month, "-30": f"-28&previous={size}"})
    reader.follow("docs/evidence.md", 4)
    (name,) = (reader.folder / "ledger-of-acme").glob("*key*")
    reader.environment["KEY"] = name.read_text().splitlines()[0]
    assert "unedited" in reader.follow("docs/evidence.md", 2)


def test_ledger(reader: Reader) -> None:
    assert "acme" in reader.follow("docs/ledger.md", 1)


def test_configuration(reader: Reader) -> None:
    other = "version: 1\ntenants: [{slug: other, name: Other}]\n"
    (reader.folder / "other.yaml").write_text(other)
    reader.run("uv run manage.py export-config acme --output acme.yaml")
    reader.follow("docs/configuration.md", 1)
    assert json.loads((reader.folder / "config.json").read_text())["properties"]


def test_operations(reader: Reader) -> None:
    here = {"/backups/": f"{reader.folder}/"}
    reader.follow("docs/operations.md", 1, **here)
    assert (reader.folder / "tooltrail.dump").exists()
    reader.follow("docs/operations.md", 3, **{"uv run manage.py up ": "true "})
    names = {
        "ACME": "Third Inc",
        "ada": "bob",
        "acme": "third-inc",
        "delete third-inc": "delete third-inc --yes 'Third Inc'",
    }
    assert "third-inc" in reader.follow("docs/operations.md", 6, **names)
    reader.follow("docs/operations.md", 9)
    assert "0 would change" in reader.follow("docs/running.md", 7)


def test_command_line_of_the_sdk(reader: Reader) -> None:
    reader.follow(
        "sdk/README.md",
        2,
        **{"tooltrail send --adopt OLD_KEY_ID": "true", "tooltrail send --adopt KEY_ID": "true"},
    )
    reader.follow("sdk/README.md", 3)
    reader.run("mkdir -p ~/.local/share/bash-completion/completions")
    reader.follow("sdk/README.md", 6)
    reader.follow("docs/mcp-recorder.md", 2)
