"""What a page does, the API does: every act is compared with the operations of the API.

An act is a route of the pages that accepts POST (`tests/isolation/routes.py`, whose methods
`test_matrix.py` compares with the server).
"""

import json
from collections.abc import Mapping

import pytest

from config.openapi import description
from tenants.api_reads import Answer
from tests.isolation.routes import ROUTES, UNSAFE, Visit
from tests.support.api_story import STORY

ACTS: Mapping[str, tuple[str, ...]] = {
    "admin/tools_registry/tool/<path:object_id>/change/": ("describe_the_tool", "save_the_draft"),
    "admin/tools_registry/tool/add/": ("create_empty_tool", "publish_the_draft"),
    "alerts/<uuid:pk>/acknowledge": ("acknowledge_alert",),
    "alerts/<uuid:pk>/resolve": ("resolve_alert",),
    "alerts/maintenance/<uuid:pk>/delete": ("delete_maintenance_window",),
    "alerts/maintenance/new": ("save_maintenance_windows",),
    "alerts/rules/<uuid:pk>": ("save_alert_rules",),
    "alerts/rules/<uuid:pk>/delete": ("delete_alert_rule",),
    "alerts/rules/<uuid:pk>/mute": ("mute_alert_rule",),
    "alerts/rules/event": ("save_alert_rules",),
    "alerts/rules/new": ("save_alert_rules", "start_alert_trial"),
    "alerts/rules/starter": ("save_alert_rules",),
    "alerts/trials/<uuid:pk>/cancel": ("cancel_alert_trial",),
    "apart/arguments": ("start_comparison",),
    "apart/arguments/<uuid:pk>/cancel": ("cancel_comparison",),
    "calls/<day:started_on>/<uuid:invocation_id>/reveal": ("reveal_call",),
    "boards/<uuid:pk>/delete": ("remove_board",),
    "boards/<uuid:pk>/edit": ("replace_board",),
    "boards/new": ("create_board",),
    "calls/search": ("start_search",),
    "calls/search/<uuid:pk>/cancel": ("cancel_search",),
    "views/": ("create_view",),
    "views/<uuid:pk>/change": ("edit_view",),
    "views/<uuid:pk>/delete": ("remove_view",),
    "definitions/<uuid:pk>/approve": ("approve_definition",),
    "definitions/<uuid:pk>/withdraw": ("withdraw_definition_approval",),
    "definitions/approve": ("approve_definitions",),
    "inbox/<uuid:pk>/discard": ("discard_inbox_line",),
    "inbox/<uuid:pk>/reveal": ("reveal_inbox_line",),
    "inbox/<uuid:pk>/send": ("send_inbox_line",),
    "inbox/discard": ("discard_inbox_lines",),
    "share/<uuid:pk>/payloads": ("allow_link_payloads",),
    "share/<uuid:pk>/revoke": ("revoke_share_link",),
    "share/new": ("create_share_link",),
    "notes/<uuid:pk>/change": ("edit_note",),
    "notes/<uuid:pk>/delete": ("remove_note",),
    "notes/new": ("create_note",),
    "incidents/": ("begin_incident",),
    "ledger/check": ("start_ledger_check",),
    "ledger/check/<uuid:pk>/cancel": ("cancel_ledger_check",),
    "repeats/polling": ("add_polling_tool",),
    "repeats/polling/remove": ("remove_polling_tool",),
    "reports/<uuid:pk>/again": ("make_report",),
    "reports/create": ("make_report",),
    "reports/schedule": ("change_report_schedule",),
    "samples/": ("start_sample",),
    "samples/<uuid:pk>/calls/<int:position>": ("conclude_sample_call",),
    "samples/<uuid:pk>/cancel": ("cancel_sample",),
    "samples/<uuid:pk>/draw": ("draw_the_sample",),
    "samples/<uuid:pk>/return": ("return_sample",),
    "samples/<uuid:pk>/sign": ("sign_sample",),
    "samples/<uuid:pk>/witness": ("bring_sample_to_witnesses",),
    "settings/channels/<uuid:pk>": ("save_channel",),
    "settings/channels/<uuid:pk>/delete": ("remove_channel",),
    "settings/channels/<uuid:pk>/test": ("send_channel_test",),
    "settings/channels/new/<slug:kind>": ("save_channel",),
    "settings/streams/<uuid:pk>/change": ("save_stream",),
    "settings/streams/<uuid:pk>/delete": ("remove_stream",),
    "settings/streams/<uuid:pk>/no-payloads": ("stop_stream_payloads",),
    "settings/streams/<uuid:pk>/pause": ("pause_stream",),
    "settings/streams/<uuid:pk>/payloads": ("allow_stream_payloads",),
    "settings/streams/<uuid:pk>/replay": ("replay_stream",),
    "settings/streams/<uuid:pk>/resume": ("resume_stream",),
    "settings/streams/<uuid:pk>/test": ("send_stream_test",),
    "settings/streams/new/<slug:way>": ("save_stream",),
    "settings/erasures/<uuid:pk>/cancel": ("cancel_erasure",),
    "settings/erasures/<uuid:pk>/confirm": ("confirm_erasure",),
    "settings/erasures/start": ("start_erasure",),
    "settings/floor/<uuid:pk>/approve": ("approve_floor_request",),
    "settings/floor/<uuid:pk>/refuse": ("refuse_floor_request",),
    "settings/floor/raise": ("raise_floor",),
    "settings/floor/request": ("request_lower_floor",),
    "settings/holds": ("set_hold",),
    "settings/holds/<uuid:pk>/release": ("release_hold",),
    "settings/keys": ("create_key",),
    "settings/keys/<uuid:pk>/revoke": ("revoke_key",),
    "settings/keys/<uuid:pk>/rotate": ("rotate_key",),
    "settings/members": ("create_invitation",),
    "settings/members/<uuid:pk>/remove": ("remove_member",),
    "settings/members/<uuid:pk>/role": ("change_member_role",),
    "settings/members/invitations/<uuid:pk>/revoke": ("revoke_invitation",),
    "settings/prices/<day:holds_from>": ("save_price_list",),
    "settings/prices/<day:holds_from>/delete": ("remove_price_list",),
    "settings/prices/new": ("save_price_list",),
    "settings/redaction": ("change_redaction", "try_redaction", "look_up_principal"),
    "settings/witnesses": ("change_witnesses",),
    "settings/sign-in": ("change_sign_in_settings",),
    "settings/sign-in/sso-only": ("change_sso_only",),
    "settings/sign-in/providers/<uuid:pk>": ("change_identity_provider",),
    "settings/sign-in/providers/<uuid:pk>/disable": ("disable_identity_provider",),
    "settings/sign-in/providers/<uuid:pk>/enable": ("enable_identity_provider",),
    "settings/sign-in/providers/new": ("add_identity_provider",),
    "settings/service-accounts": ("create_service_account",),
    "settings/service-accounts/<uuid:pk>/delete": ("delete_service_account",),
    "settings/service-accounts/<uuid:pk>/disable": ("disable_service_account",),
    "settings/service-accounts/<uuid:pk>/enable": ("enable_service_account",),
    "settings/tenant": ("change_settings",),
    "tools/<uuid:pk>/<int:number>/<slug:action>": ("change_version_state",),
    "tools/<uuid:pk>/arrivals": ("check_arrivals",),
    "tools/<uuid:pk>/describe": ("describe_the_tool",),
    "tools/<uuid:pk>/draft": ("save_the_draft",),
    "tools/<uuid:pk>/draft/begin": ("begin_the_draft",),
    "tools/<uuid:pk>/draft/check": ("check_contract",),
    "tools/<uuid:pk>/draft/discard": ("discard_the_draft",),
    "tools/<uuid:pk>/draft/publish": ("publish_the_draft",),
    "tools/<uuid:pk>/drift/analyses/<uuid:analysis_id>/cancel": ("cancel_drift_analysis",),
    "tools/<uuid:pk>/drift/analyze": ("start_drift_analysis",),
    "tools/<uuid:pk>/drift/draft": ("draft_from_drift",),
    "tools/<uuid:pk>/regression-set/make": ("make_a_regression_set",),
    "tools/<uuid:pk>/regression-set/remove": ("remove_the_regression_set",),
    "tools/<uuid:pk>/replays": ("start_replay",),
    "tools/<uuid:pk>/replays/<uuid:replay_id>/cancel": ("cancel_replay",),
    "tools/create": ("create_empty_tool",),
    "tools/import": ("import_registry",),
    "tools/import/<uuid:pk>/cancel": ("cancel_import",),
    "tools/import/<uuid:pk>/confirm": ("import_registry",),
    "tools/import/<uuid:pk>/preview": ("import_registry",),
}
"""The operations of the API that do what a route of the pages does."""

PAGES_ONLY: Mapping[str, str] = {
    "admin/": "an index of Django's admin site: it accepts POST and changes nothing",
    "admin/tools_registry/tool/": "a list of Django's admin site without actions",
    r"admin/^(?P<app_label>tools_registry)/$": "an index of Django's admin site",
    "invitations/<str:token>": "a person decides to join, with an account of their own",
    "first-steps/key": "the same act as settings/keys, with the scopes of the guide",
    "login": "a key needs no session",
    "logout": "a key needs no session",
    "sign-in/<slug:slug>": "a key needs no session",
    "login/code": "a person's own",
    "login/passkey": "a person's own",
    "password/forgotten": "a person's own",
    "password/new/<str:uidb64>/<str:token>": "a person's own",
    "settings/password": "a person's own",
    **{
        f"settings/security{route}": "a person's own"
        for route in (
            *("", "/app", "/codes/new", "/passkeys", "/passkeys/add", "/address"),
            *("/passkeys/<int:pk>/rename", "/passkeys/<int:pk>/remove"),
            *("/confirm", "/confirm/code", "/confirm/passkey"),
            *("/providers/<uuid:pk>/connect", "/providers/<uuid:pk>/disconnect"),
        )
    },
    "settings/preferences": "how pages look for one person",
    "views/columns": "how pages look for one person",
    "views/<uuid:pk>/default": "how pages look for one person",
    "switch-tenant": "a key belongs to one tenant",
    "theme": "how pages look for one person",
    "tools/import/<uuid:pk>/discard": "over the API no file waits for a decision; kept for a day",
}
"""Acts that the API has not, each with the reason."""

API_ONLY: Mapping[str, str] = {
    "compare_definitions": "whoever changes a tool asks before there is a draft or an import",
    "receive_events": "executors send them",
    "receive_logs": "executors send them",
    "receive_metrics": "executors send them",
    "receive_traces": "executors send them",
    "register_tools": "executors register what their code has; people publish drafts",
}
"""Operations that no page has, each with the reason."""


def acts_of_pages(routes: Mapping[str, Visit]) -> set[str]:
    """The routes of pages that accept POST."""
    return {
        route
        for route, visit in routes.items()
        if (
            "POST" in visit.answers
            and visit.answers["POST"] not in {404, 405}
            and getattr(visit, "scope", None) is None
        )
        or route == "invitations/<str:token>"
    }


def operations(document: Mapping[str, Mapping[str, Mapping[str, str]]]) -> set[str]:
    """The operations that change something."""
    return {
        one["operationId"]
        for methods in document.values()
        for method, one in methods.items()
        if method.upper() in UNSAFE
    }


def differences(pages: set[str], api: set[str]) -> list[str]:
    """One line for each act that only one of both has."""
    done = {operation for several in ACTS.values() for operation in several}
    return [
        *(
            f"page {one!r} has no operation: list it in ACTS, or in PAGES_ONLY with a reason"
            for one in sorted(pages - ACTS.keys() - PAGES_ONLY.keys())
        ),
        *(
            f"operation {one!r} has no page: list it in ACTS, or in API_ONLY with a reason"
            for one in sorted(api - done - API_ONLY.keys())
        ),
        *(f"no such page: {one!r}" for one in sorted((ACTS.keys() | PAGES_ONLY.keys()) - pages)),
        *(f"no such operation: {one!r}" for one in sorted((done | API_ONLY.keys()) - api)),
    ]


def test_every_act_is_on_pages_and_in_the_api() -> None:
    found = differences(acts_of_pages(ROUTES), operations(description()["paths"]))
    assert not found, "\n".join(found)


def test_generated_clients_do_every_act() -> None:
    acts = operations(description()["paths"])
    assert sorted(step.operation for step in STORY) == sorted(acts), (
        "add the act to tests/support/api_story.py"
    )


def test_references_lead_into_the_description() -> None:
    """A body's own definitions are not in the description: generators leave such operations out."""
    assert "#/$defs/" not in json.dumps(description())


def test_no_two_schemas_have_one_name() -> None:
    """The description knows a schema by its name: a second one would replace the first."""
    modules: dict[str, set[str]] = {}
    schemas = [*Answer.__subclasses__()]
    while schemas:
        schema = schemas.pop()
        schemas += schema.__subclasses__()
        modules.setdefault(schema.__name__, set()).add(schema.__module__)
    assert {name: each for name, each in modules.items() if len(each) > 1} == {}


def test_exceptions_have_a_reason() -> None:
    assert all(len(reason) > 10 for reason in (*PAGES_ONLY.values(), *API_ONLY.values()))


@pytest.mark.parametrize("route", ["settings/holds", "theme"])
def test_act_of_a_page_alone_would_be_reported(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (ACTS, PAGES_ONLY):
        monkeypatch.setattr(
            f"{__name__}.{'ACTS' if table is ACTS else 'PAGES_ONLY'}",
            {name: one for name, one in table.items() if name != route},
        )
    found = differences(acts_of_pages(ROUTES), operations(description()["paths"]))
    assert any(f"page '{route}' has no operation" in line for line in found)


def test_act_of_the_api_alone_would_be_reported() -> None:
    api = operations(description()["paths"]) | {"delete_ledger"}
    (line,) = differences(acts_of_pages(ROUTES), api)
    assert "operation 'delete_ledger' has no page" in line
