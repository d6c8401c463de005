"""The SDK imports without the server's packages and without the frameworks of its adapters."""

import subprocess
import sys
import textwrap

import pytest

SERVER_ONLY = {"asgiref", "django", "ninja", "procrastinate", "psycopg"}
FRAMEWORKS = {
    *("agents", "agno", "autogen_core", "claude_agent_sdk", "crewai", "fastmcp", "google"),
    *("langchain_core", "llama_index", "mcp", "pydantic_ai", "smolagents", "strands"),
}

SCRIPT = """
    import importlib, pkgutil, sys
    import tooltrail

    names = [module.name for module in pkgutil.walk_packages(tooltrail.__path__, "tooltrail.")]
    for name in names:
        if not name.endswith(".__main__") and not name.startswith("tooltrail.integrations."):
            importlib.import_module(name)
    print(len(names), *sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.slow
def test_sdk_modules_import_no_server_packages() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(SCRIPT)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    count, *imported = ran.stdout.split()
    assert int(count) > 10
    assert not (SERVER_ONLY | FRAMEWORKS) & set(imported)
