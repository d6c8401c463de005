"""A checkout, once installed, starts without the network and without uv's cache."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.instance import BASE_DIR
from tests.support.installation import clean_environment, prepared_installation
from tests.support.no_network import without_network

_START = """
import json, socket, subprocess, sys, urllib.request
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
facts = json.loads(process.stdout.readline())
with urllib.request.urlopen(facts["url"] + "/readyz") as answer:
    status = answer.status
process.terminate()
interfaces = [name for _, name in socket.if_nameindex()]
print(json.dumps([interfaces, status, process.wait()]))
"""


@pytest.mark.sampled("installed wheels", 1)
@pytest.mark.slow
def test_installed_checkout_starts_without_network(tmp_path: Path) -> None:
    up = ["uv", "run", "manage.py", "up", "--dev-tenant", "acme", "--json", "--port", "0"]
    with prepared_installation() as installation:
        cache, var = str(tmp_path / "cache"), str(installation.var)
        completed = subprocess.run(
            without_network([sys.executable, "-c", _START, *up], os.geteuid()),
            cwd=BASE_DIR,
            env=clean_environment(TOOLTRAIL_VAR=var, UV_CACHE_DIR=cache),
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout) == [["lo"], 200, 0]
