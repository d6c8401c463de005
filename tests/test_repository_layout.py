"""The layout of the repository: where test modules lie, what they import, and module names."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("audit", "config", "sdk", "tenants", "tests", "tools_registry")
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "services", "service", "misc", "common"}
VAGUE_VALUES = {"asked", "deed", "found", "look", "said", "standing", "stretch", "told"}
"""Words that name neither a value nor where it is from."""
MAX_TOP_MODULES = 6  # of audit/, without __init__.py: all else lies in a storey

FOLDERS_WITHOUT_COUNTERPART = {
    # A folder of tests/audit and why audit/ has none of that name.
    "pages/api": "the read API: every screen's `api` module, tested as one contract",
}
NOT_TESTS = {
    # A module beside tests that is neither a test nor in tests/support, and why.
    "sdk/tests/guard/exemptions.py": "recorded rows that do not apply: data of one test",
    "sdk/tests/integrations/calls.py": "runs a framework's script and pairs the events it recorded",
    "sdk/tests/mcp_recorder/real/drive.py": "a client, run with the package of MCP it is for",
    "sdk/tests/mcp_recorder/real/tee.py": "keeps a copy of what passes, on both sides",
    "sdk/tests/mcp_recorder/real/weather.py": "a server, run with the package of MCP it is for",
    "sdk/tests/integrations/mcp/rounds.py": "a second script of the environment of mcp",
    "sdk/tests/integrations/stage.py": "what the scripts of all frameworks have in common",
    "tests/fuzz/ndjson.py": "hooks of schemathesis, whose import path is this folder",
    "tests/isolation/routes.py": "the routes of the isolation matrix",
    "tests/isolation/world.py": "the tenants and rows of the isolation matrix",
    "tests/config/later/migrations/9000_later.py": "a migration of a later version",
    "tests/config/later/settings.py": "the settings of a later version",
    "tests/schema/catalog.py": "the queries of the schema rules",
    "tests/schema/databases.py": "the databases of the schema rules",
    "tests/schema/notes.py": "the blocks above the tables in the SQL",
    "tests/schema/rules.py": "the schema rules",
}


def python_files(*folders: str) -> Iterator[Path]:
    """Modules of these folders, relative to the repository."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not {part for part in path.parts if part.startswith(".")}:
                yield path.relative_to(ROOT)


def imported(path: Path) -> set[str]:
    """The modules that a module imports, and `module.name` of each name it takes."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


SCRIPT = re.compile(r"sdk/tests/integrations/\w+/(run|near|far)\.py")
"""The scripts of a framework, which run in that framework's environment."""
TESTS = [path for path in python_files("tests", "sdk/tests") if path.name.startswith("test_")]


@pytest.mark.slow
def test_no_module_imports_a_test_module_or_conftest() -> None:
    modules = {str(test.with_suffix("")).replace("/", ".") for test in TESTS}
    imports = {
        (str(path), name)
        for path in python_files("tests", "sdk/tests", "bench", "docs")
        for name in imported(path)
        if name in modules or name.rpartition(".")[2] == "conftest"
    }

    assert imports == set()


def test_other_modules_beside_tests_are_listed_with_a_reason() -> None:
    beside = {
        str(path)
        for path in python_files("tests", "sdk/tests")
        if not re.fullmatch(r"test_\w+|conftest|__init__", path.stem)
        and "support" not in path.parts
        and not SCRIPT.fullmatch(str(path))
    }

    assert beside == NOT_TESTS.keys()


def test_support_folders_contain_no_tests() -> None:
    support = [path for path in TESTS if "support" in path.parts]

    assert support == []


def test_audit_has_few_top_level_modules() -> None:
    top = [path.name for path in (ROOT / "audit").glob("*.py") if path.stem != "__init__"]

    assert len(top) <= MAX_TOP_MODULES, top


def test_each_audit_test_folder_matches_a_package() -> None:
    folders = {
        str(path.parent.relative_to("tests/audit")) for path in TESTS if path.parts[1] == "audit"
    }
    without = {folder for folder in folders if not (ROOT / "audit" / folder).is_dir()}

    assert without <= FOLDERS_WITHOUT_COUNTERPART.keys(), without
    assert FOLDERS_WITHOUT_COUNTERPART.keys() <= folders


def test_no_module_or_package_has_a_vague_name() -> None:
    vague = [
        path for path in python_files(*PACKAGES) if VAGUE_NAMES & {path.stem, *path.parts[:-1]}
    ]

    assert vague == []


def names_given(path: Path) -> Iterator[str]:
    """Functions, classes, parameters and variables that a module names."""
    for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@pytest.mark.slow
def test_names_say_what_a_value_is() -> None:
    product = python_files("audit", "config", "sdk/src", "tenants", "tools_registry")
    vague = [
        f"{path}: {name}"
        for path in product
        for name in names_given(path)
        if name.strip("_").lower() in VAGUE_VALUES
    ]

    assert vague == []
