"""Hostile texts in forms never cause a 500, and the log shows them escaped."""

import logging
import sys

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client

from config.process.log_lines import LineFormatter
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

MANY_DIGITS = "9" * 5_000


@pytest.mark.parametrize("back", ["abc", "a\x1b[31m\0", "..", "http:", "//evil.example", "\\x"])
def test_theme_form_redirects_only_to_local_paths(back: str) -> None:
    answer = Client().post("/theme", {"theme": "dark", "next": back})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")


@pytest.mark.parametrize("meta", ["[" * 20_000, MANY_DIGITS, '{"a":"\\ud800"}', '{"a":"\\u0000"}'])
def test_unusable_labels_are_rejected(acme: Cast, meta: str) -> None:
    contract = ToolContract.model_validate(make_contract())
    with tenant_scope(acme.tenant.id):
        register_contracts(acme.tenant, [contract], Publisher(key_id="key"))
        tool = Tool.objects.get(name=contract.name)
    client = Client()
    client.force_login(acme.editor)
    answer = client.post(f"/tools/{tool.pk}/describe", {"meta": meta})
    assert answer.status_code < 500
    with tenant_scope(acme.tenant.id):
        assert Tool.objects.get(pk=tool.pk).meta == {}


@pytest.mark.parametrize("field", ["payload_days", "index_days"])
def test_number_of_5000_digits_is_rejected(acme: Cast, field: str) -> None:
    client = Client()
    client.force_login(acme.admin)
    answer = client.post("/settings/tenant", {"name": "Acme", field: MANY_DIGITS})
    assert answer.status_code < 500
    assert answer.context["form"].errors[field]


@pytest.mark.parametrize("path", ["/api/v1/calls", "/api/v1/nothing", "/v1/traces"])
def test_api_answers_are_not_cached(path: str) -> None:
    assert Client().get(path).headers["Cache-Control"] == "no-store"


def _record(status: int, message: str) -> logging.LogRecord:
    try:
        raise PermissionDenied("no")
    except PermissionDenied:
        fault = sys.exc_info()
    record = logging.LogRecord("django.request", logging.WARNING, "", 1, message, (), fault)
    record.status_code = status
    return record


def test_rejection_is_logged_without_a_traceback_and_a_failure_with_one() -> None:
    (handler,) = [one for one in logging.getLogger().handlers if one.get_name() == "console"]
    assert isinstance(handler.formatter, LineFormatter), "the server's log must use it"
    lines = LineFormatter("{message}", style="{")
    assert lines.format(_record(403, "Forbidden: /settings/keys")) == "Forbidden: /settings/keys"
    assert "Traceback" in lines.format(_record(500, "Error: /"))


def test_control_characters_are_escaped_in_the_log() -> None:
    line = LineFormatter("{message}", style="{").format(_record(403, "a\x1b[31m\0\x9b\rb"))
    assert line == r"a\x1b[31m\x00\x9b\x0db"
