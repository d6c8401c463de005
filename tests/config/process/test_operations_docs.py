"""Everything that docs/operations.md, the Containerfile and the compose file name exists."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from django.core.management import CommandError, get_commands

from audit.intake.metrics import FAMILIES
from config.health import _gauges
from config.instance import BASE_DIR
from config.postgresql.roles import VARIABLES
from tests.support.documents import DOCUMENTS
from tests.support.management_commands import parse

OPERATIONS = BASE_DIR / "docs" / "operations.md"
CONTAINERFILE = (BASE_DIR / "Containerfile").read_text()
COMPOSE = (BASE_DIR / "compose.yaml").read_text()


def commands_in(text: str) -> list[list[str]]:
    """The arguments of every `manage.py …` in the code of a document."""
    code = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = "\n".join(code).replace("\\\n", " ").splitlines() + re.findall(r"`([^`\n]+)`", text)
    commands = []
    for line in lines:
        called = re.search(r"(?:manage\.py|run --rm tooltrail) +([a-z].*)", line)
        if called:
            words = shlex.split(re.sub(r"\$\([^)]*\)", "x", called[1]), comments=True)
            end = next((at for at, word in enumerate(words) if word in (">", "|", ">>")), None)
            commands.append(words[:end])
    return commands


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documented_commands_can_be_parsed(document: Path) -> None:
    for arguments in commands_in(document.read_text()):
        # A name without arguments, such as `manage.py tenant`, is no command line.
        if len(arguments) == 1 and document != OPERATIONS:
            assert arguments[0] in get_commands()
        elif arguments not in (["database", "init"], ["up"]) and "|" not in " ".join(arguments):
            parse(arguments)


def test_command_extraction_works() -> None:
    commands = commands_in(OPERATIONS.read_text())
    assert ["tenant", "suspend", "acme"] in commands
    assert [
        "database",
        "init",
        "--admin-url",
        "postgresql://postgres:x@postgres/postgres",
    ] in commands
    with pytest.raises(CommandError):
        parse(["tenant", "explode", "acme"])


@pytest.mark.slow
def test_every_documented_metric_is_exposed() -> None:
    named = set(re.findall(r"\btooltrail_[a-z_]+", OPERATIONS.read_text()))
    exposed = set(_gauges())
    for name, (_, _, suffixes) in FAMILIES.items():
        exposed |= {(name + suffix).partition("{")[0] for suffix in suffixes} | {name}
    assert named - exposed == set()
    assert named >= set(_gauges())


def test_every_documented_metric_label_exists() -> None:
    lines = "".join(suffix for _, _, suffixes in FAMILIES.values() for suffix in suffixes)
    for label, value in re.findall(r'\{(\w+)="([a-z]+)"\}', OPERATIONS.read_text()):
        assert f'{{{label}="{value}"}}' in lines


def test_secrets_of_the_documented_steps_are_in_no_image_and_no_commit() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", OPERATIONS.read_text(), re.DOTALL | re.MULTILINE)
    code = "".join(blocks)
    written = set(re.findall(r"(?:> |--from-file )([\w./-]+)", code))
    assert written >= {"postgres.secret", "tooltrail.env", "ledger/signing-keys.json"}
    ignored = (BASE_DIR / ".dockerignore").read_text().splitlines()
    for name in written:
        parts = [name, name.partition("/")[0]]
        assert any(fnmatch(part, rule) for part in parts for rule in ignored), name
        asked = ["git", "check-ignore", "--quiet", name]
        assert subprocess.run(asked, cwd=BASE_DIR, check=False).returncode == 0, name


def test_container_command_and_compose_variables_are_valid() -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", CONTAINERFILE, re.MULTILINE)
    (command,) = re.findall(r"^CMD (.*)$", CONTAINERFILE, re.MULTILINE)
    assert json.loads(entry) == [".venv/bin/python", "manage.py"]
    parse(json.loads(command))
    (composed,) = re.findall(r"^    command: (.*)$", COMPOSE, re.MULTILINE)
    assert json.loads(composed) == json.loads(command)
    assert all(name in COMPOSE for name in VARIABLES)
    assert "dockerfile: Containerfile" in COMPOSE
    # Nothing that must be kept may lie where it is deleted with the container.
    (var,) = re.findall(r"^ENV TOOLTRAIL_VAR=(.*)$", CONTAINERFILE, re.MULTILINE)
    assert f'["tooltrail:{var}"]' in COMPOSE


def test_container_uses_existing_uv_options() -> None:
    (called,) = re.findall(r"uv sync ([^\\\n]*)", CONTAINERFILE)
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on the PATH, as where the environment was made by other means")
    shown = subprocess.run([uv, "sync", "--help"], capture_output=True, text=True, check=True)
    for option in re.findall(r"--\S+", called):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", shown.stdout), option


def test_container_python_matches_the_project() -> None:
    (version,) = re.findall(r"^FROM .*/python:([\d.]+)", CONTAINERFILE, re.MULTILINE)
    assert version == (BASE_DIR / ".python-version").read_text().strip()
    sdk = tomllib.loads((BASE_DIR / "sdk" / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version}" in sdk["classifiers"]


def test_systemd_unit_matches_the_instructions() -> None:
    running = (BASE_DIR / "docs" / "running.md").read_text()
    (text,) = re.findall(r"^```ini\n(\[Unit\].*?)^```", running, re.DOTALL | re.MULTILINE)
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's names have capitals
    unit.read_string(text)
    service = unit["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    environment, _, command = program.partition("/bin/")
    assert f"python3 -m venv {environment} " in running
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]
    assert command in project["scripts"]
    parse(arguments)
    # The unit may write to this folder only.
    assert service["Environment"] == f"TOOLTRAIL_VAR=/var/lib/{service['StateDirectory']}"
    assert service["KillMode"] == "mixed"
    assert unit["Install"]["WantedBy"] == "multi-user.target"
    assert f"useradd --system --home-dir /var/lib/{service['User']}" in running


def test_systemd_drop_in_runs_the_documented_worker() -> None:
    running = (BASE_DIR / "docs" / "running.md").read_text()
    text = OPERATIONS.read_text()
    (block,) = re.findall(r"^```ini\n\[Service\]\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    # An empty value first, or systemd would run the command of the unit, too.
    empty, command, *others = block.replace("\\\n", "").splitlines()
    assert empty == "ExecStart="
    assert others == ["Restart=always", "RestartSec=5"], "it ends with 0 without the database"
    program, *arguments = shlex.split(command.removeprefix("ExecStart="))
    assert f"ExecStart={program} up\n" in running
    (shown,) = re.findall(
        r"^tooltrail-server (procrastinate worker .*?)  +#", text, re.DOTALL | re.MULTILINE
    )
    assert [*arguments, "--queues", "ledger"] == shlex.split(shown.replace("\\\n", ""))
    parse(arguments)


def test_uv_does_not_download_python_automatically() -> None:
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())
    assert project["tool"]["uv"]["python-downloads"] == "manual"


def test_quick_start_accepts_every_supported_python() -> None:
    """Without UV_PYTHON, `.python-version` would refuse a host with only the oldest Python."""
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]
    readme = (BASE_DIR / "README.md").read_text()
    first = re.search(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert first is not None
    before, run, _ = first[1].partition("uv run manage.py up")
    assert f"export UV_PYTHON='{project['requires-python']}'" in before
    assert run


def test_tool_names_of_examples_are_unique() -> None:
    """Newcomers use the demo's key: an example with a name of the demo prints a collision."""
    names: list[str] = []
    decorated = re.compile(r"^ *@trail\.tool\b.*\n *(?:async )?def (\w+)", re.MULTILINE)
    for path in ("README.md", "sdk/README.md"):
        names += set(decorated.findall((BASE_DIR / path).read_text()))
    names += decorated.findall((BASE_DIR / "audit" / "demo" / "tools.py").read_text())
    assert len(names) > 10
    assert sorted(names) == sorted(set(names))
