"""Ids of requests: in answers, in lines of the log, as text and as JSON."""

import io
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from config.http.request_ids import HEADER, RequestIdFilter, RequestIdMiddleware
from config.process.json_lines import json_line
from config.process.log_lines import JsonLineFormatter, LineFormatter

TEXT = LineFormatter("{levelname} {name}: {message}", style="{")


@pytest.fixture
def log() -> Iterator[logging.StreamHandler[io.StringIO]]:
    """The handler of the server's log, with a stream that can be read."""
    handler = logging.StreamHandler(io.StringIO())
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(JsonLineFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)


def test_every_answer_has_an_id_of_its_own() -> None:
    answers = [Client().get(path) for path in ("/healthz", "/login", "/api/v1/calls", "/nowhere")]
    ids = [answer.headers[HEADER] for answer in answers]
    assert all(ids)
    assert len(set(ids)) == 4


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        ("3f2a-11", True),
        ("01/ab:c=+_.", True),
        ("x" * 128, True),
        ("", False),
        ("x" * 129, False),
        ("a b", False),
        ("<script>", False),
        ("a\x1b[31m", False),
        ("a\n", False),
        ("ä", False),
    ],
)
def test_only_a_plain_id_is_kept(given: str, is_kept: bool) -> None:
    request = RequestFactory().get("/", headers={HEADER: given})
    answer = RequestIdMiddleware(lambda _: HttpResponse())(request)
    assert (answer.headers[HEADER] == given) is is_kept
    assert answer.headers[HEADER].isascii()


def test_lines_of_a_request_have_its_id(log: logging.StreamHandler[io.StringIO]) -> None:
    def answer(_request: HttpRequest) -> HttpResponse:
        logging.getLogger("tests").warning("half\x1b full")
        return HttpResponse()

    RequestIdMiddleware(answer)(RequestFactory().get("/", headers={HEADER: "abc"}))
    with ThreadPoolExecutor(1) as other_thread:
        other_thread.submit(logging.getLogger("tests").warning, "outside").result()
    log.setFormatter(TEXT)
    RequestIdMiddleware(answer)(RequestFactory().get("/", headers={HEADER: "def"}))
    first, second, third = log.stream.getvalue().splitlines()
    inside = json.loads(first)
    assert inside["request_id"] == "abc"
    assert inside["message"] == "half\x1b full"
    assert json.loads(second)["request_id"] is None
    assert third == r"WARNING tests: half\x1b full [def]"


def test_a_refusal_has_the_id_of_its_request(log: logging.StreamHandler[io.StringIO]) -> None:
    Client().get("/nowhere", headers={HEADER: "abc"})
    line = json.loads(log.stream.getvalue())
    assert (line["message"], line["request_id"]) == ("Not Found: /nowhere", "abc")


def test_requests_are_logged_without_their_query(
    log: logging.StreamHandler[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "LOG_REQUESTS", True)
    logging.getLogger("tooltrail.request").setLevel(logging.INFO)
    Client().get("/healthz?q=secret-word", headers={HEADER: "abc"})
    line = json.loads(log.stream.getvalue())
    assert "secret-word" not in log.stream.getvalue()
    assert line | {"milliseconds": 0, "time": ""} == {
        "time": "",
        "level": "INFO",
        "logger": "tooltrail.request",
        "message": "GET /healthz 200",
        "request_id": "abc",
        "method": "GET",
        "path": "/healthz",
        "status": 200,
        "milliseconds": 0,
    }


def test_json_lines_have_tracebacks_only_of_errors(
    log: logging.StreamHandler[io.StringIO],
) -> None:
    try:
        raise ValueError("what happened")
    except ValueError:
        for status in (403, 500):
            logging.getLogger("django.request").error(
                "refused", exc_info=True, extra={"status_code": status, "request": HttpRequest()}
            )
    refused, failed = map(json.loads, log.stream.getvalue().splitlines())
    assert "exc_info" not in refused
    assert "what happened" in failed["exc_info"]
    assert "request" not in failed
    assert failed["status_code"] == 500


def test_the_supervisor_writes_the_same_form() -> None:
    line = json.loads(json_line("WARNING", "tooltrail", "stopping"))
    record = logging.LogRecord("tooltrail", logging.WARNING, "", 0, "stopping", None, None)
    theirs = json.loads(JsonLineFormatter().format(record))
    assert {name: value for name, value in theirs.items() if name in line and name != "time"} == {
        name: value for name, value in line.items() if name != "time"
    }
    assert line["time"][:13] == theirs["time"][:13]
