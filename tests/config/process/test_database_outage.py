"""PostgreSQL stops under a running installation, and comes back."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import psutil
import pytest
import urllib3

from tests.support.event_requests import NDJSON, lines, new_batch_id
from tests.support.factories import make_call
from tests.support.installation import (
    announcement,
    end,
    prepared_installation,
    until,
)

pytestmark = pytest.mark.slow


@pytest.mark.sampled("stopping or without a database", 1)
def test_probes_answer_and_requests_get_503_while_the_database_hangs() -> None:
    """A suspended PostgreSQL neither answers nor closes connections: the worst kind of outage."""
    with prepared_installation() as installation:
        process = installation.up("--json", "--dev-tenant", "acme", TOOLTRAIL_WEB_PROCESSES="1")
        facts = announcement(process)
        with urllib3.PoolManager(retries=False, timeout=60, maxsize=40) as http:
            headers = {
                "Authorization": f"Bearer {facts['api_key']}",
                "Content-Type": NDJSON,
            }

            def send() -> urllib3.BaseHTTPResponse:
                return http.request(
                    "POST",
                    facts["url"] + "/api/v1/events",
                    body=lines(make_call()),
                    headers=headers | {"Idempotency-Key": new_batch_id()},
                )

            assert send().status == HTTPStatus.OK
            postmaster = installation.postgres.running_pid()
            assert postmaster is not None
            servers = [psutil.Process(postmaster), *psutil.Process(postmaster).children()]
            for server in servers:
                server.suspend()
            try:
                with ThreadPoolExecutor(20) as many:
                    answers = [many.submit(send) for _ in range(20)]
                    until(lambda: sum(each.done() for each in answers) >= 10)
                    statuses = {each.result().status for each in answers if each.done()}
                    assert statuses == {HTTPStatus.SERVICE_UNAVAILABLE}
                    assert not all(each.done() for each in answers)  # some wait for the database
                    for _ in range(10):
                        assert http.request("GET", facts["url"] + "/healthz").status == 200
                        assert send().status == HTTPStatus.SERVICE_UNAVAILABLE
                    assert http.request("GET", facts["url"] + "/readyz").status == 503
                    for server in servers:
                        server.resume()
                until(lambda: send().status == HTTPStatus.OK)
            finally:
                for server in servers:
                    server.resume()
        assert end(process) == 0


@pytest.mark.sampled("stopping or without a database", 1)
def test_requests_get_503_without_the_database_and_nothing_is_lost() -> None:
    with prepared_installation() as installation:
        process = installation.up("--json", "--dev-tenant", "acme")
        facts = announcement(process)
        http = urllib3.PoolManager(retries=False, timeout=60)

        def send(batch_id: str, body: bytes) -> urllib3.BaseHTTPResponse:
            headers = {
                "Authorization": f"Bearer {facts['api_key']}",
                "Content-Type": NDJSON,
                "Idempotency-Key": batch_id,
            }
            return http.request("POST", facts["url"] + "/api/v1/events", body=body, headers=headers)

        before = new_batch_id(), lines(make_call())
        meanwhile = new_batch_id(), lines(make_call())
        acknowledged = send(*before)
        assert acknowledged.status == HTTPStatus.OK

        # The supervisor is suspended, so that it does not restart the database immediately.
        process.send_signal(signal.SIGSTOP)
        installation.postgres.stop()
        refused = send(*meanwhile)
        assert refused.status == HTTPStatus.SERVICE_UNAVAILABLE, refused.data
        assert int(refused.headers["Retry-After"]) > 0
        assert json.loads(refused.data)["code"] == "unavailable"
        assert http.request("GET", facts["url"] + "/healthz").status == HTTPStatus.OK
        process.send_signal(signal.SIGCONT)

        until(lambda: send(*meanwhile).status == HTTPStatus.OK)
        again = send(*before)
        assert (again.status, again.data) == (HTTPStatus.OK, acknowledged.data)
        assert json.loads(send(*meanwhile).data)["accepted"] == 2
        assert end(process) == 0
