"""Schemathesis over /api/v1/openapi.json: no request makes the server fail.

And what it answers is what the document says: status, type of content, members.

It runs beside us, in an environment uv makes of the group `fuzz` when it is wanted.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from audit.intake.door import EVENTS
from audit.models import Batch
from config.instance import BASE_DIR
from config.openapi import description
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support import sampling
from tests.support.api_record import make_record
from tests.support.factories import Cast
from tests.support.installation import clean_environment
from tests.support.server import LiveServer

EXAMPLES = 12  # an operation and phase
SAMPLE = 4
PATHS_SAMPLED = 12
CHECKS = ",".join(
    (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    )
)


@pytest.mark.slow
def test_schemathesis_provokes_no_server_error(
    live_server: LiveServer, acme: Cast, pytestconfig: pytest.Config
) -> None:
    examples = SAMPLE if pytestconfig.getoption("sample") else EXAMPLES
    others = sorted(description()["paths"].keys() - {EVENTS})
    paths = [EVENTS, *sampling.some(pytestconfig, "fuzz", others, PATHS_SAMPLED)]
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        pytest.skip("schemathesis is fetched with uv, which is not here")
    make_record(acme)  # so that lists hold rows
    key = create_key(acme.tenant, "fuzz", list(Scope))[1]
    with tenant_scope(acme.tenant.id):
        before = Batch.objects.for_tenant(acme.tenant.id).count()
    completed = subprocess.run(
        [
            *(uv, "run", "--quiet", "--isolated"),
            *("--only-group", "fuzz", "schemathesis", "run"),
            *(f"{live_server.url}/api/v1/openapi.json", "--no-color"),
            *("--header", f"Authorization: Bearer {key}"),
            *("--checks", CHECKS, "--continue-on-failure"),
            *("--phases", "examples,coverage,fuzzing", "--max-examples", str(examples)),
            *("--seed", str(sampling.seed(pytestconfig))),
            *(f"--include-path={path}" for path in paths),
            *("--request-timeout", "30", "--generation-database", "none"),
        ],
        cwd=BASE_DIR,
        env=clean_environment(SCHEMATHESIS_HOOKS="ndjson", PYTHONPATH=str(Path(__file__).parent)),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    tested = re.search(r"Tested: (\d+)", completed.stdout)
    assert tested is not None
    assert int(tested[1]) >= len(paths)
    with tenant_scope(acme.tenant.id):
        after = Batch.objects.for_tenant(acme.tenant.id).count()
    assert after > before, "no body came as far as that"
