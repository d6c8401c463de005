"""What the API sets, a file of configuration can say: each act has its section, or a reason."""

from collections.abc import Mapping

from audit.declared.document import DeclaredTenant
from config.openapi import description

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "alert_rules": ("save_alert_rules", "delete_alert_rule"),
    "boards": ("create_board", "replace_board", "remove_board"),
    "channels": ("save_channel", "remove_channel"),
    "checks_on_arrival": ("check_arrivals",),
    "identity_providers": (
        *("add_identity_provider", "change_identity_provider"),
        *("enable_identity_provider", "disable_identity_provider"),
    ),
    "keys": ("create_key", "rotate_key", "revoke_key"),
    "maintenance_windows": ("save_maintenance_windows", "delete_maintenance_window"),
    "members": (
        *("change_member_role", "remove_member"),
        *("create_invitation", "revoke_invitation"),
    ),
    "name": ("change_settings",),
    "polling_tools": ("add_polling_tool", "remove_polling_tool"),
    "price_lists": ("save_price_list", "remove_price_list"),
    "redaction": ("change_redaction",),
    "reports": ("change_report_schedule",),
    "retention": ("change_settings", "raise_floor"),
    "saved_views": ("create_view", "edit_view", "remove_view"),
    "service_accounts": (
        *("create_service_account", "delete_service_account"),
        *("disable_service_account", "enable_service_account"),
    ),
    "sign_in": ("change_sign_in_settings",),
    "sso_only": ("change_sso_only",),
    "time_zone": ("change_settings",),
    "witnesses": ("change_witnesses",),
    "tools": (
        *("create_empty_tool", "describe_the_tool", "change_version_state"),
        *("import_registry", "register_tools"),
    ),
}
"""Of each section, the acts that set what it says."""
WITHOUT_ACTS: Mapping[str, str] = {
    "slug": "names the tenant, which only an operator makes",
    "id": "chosen when an operator makes the tenant",
}
"""Members of a tenant that no act sets, each with the reason."""
NOT_DECLARED: Mapping[str, tuple[str, ...]] = {
    "data arrives, and is no configuration": (
        *("receive_events", "receive_traces", "receive_logs", "receive_metrics"),
        *("send_inbox_line", "discard_inbox_line", "discard_inbox_lines"),
    ),
    "a person decides it in view of what happened": (
        *("acknowledge_alert", "resolve_alert", "mute_alert_rule"),
        *("create_note", "edit_note", "remove_note"),
        *("make_a_regression_set", "remove_the_regression_set"),
        *("create_share_link", "revoke_share_link", "allow_link_payloads"),
        *("approve_definition", "approve_definitions", "withdraw_definition_approval"),
    ),
    "a stream has a cursor, and an auditor decides what leaves with it": (
        *("save_stream", "remove_stream", "pause_stream", "resume_stream", "replay_stream"),
        *("allow_stream_payloads", "stop_stream_payloads", "send_stream_test"),
    ),
    "a sample is drawn once, from calls that exist, and two people sign it": (
        *("start_sample", "cancel_sample", "bring_sample_to_witnesses", "draw_the_sample"),
        *("conclude_sample_call", "sign_sample", "return_sample"),
    ),
    "two people lower a floor, and never a file": (
        *("request_lower_floor", "approve_floor_request", "refuse_floor_request"),
    ),
    "shows or looks something up": (
        *("reveal_call", "reveal_inbox_line", "look_up_principal"),
        *("try_redaction", "check_contract", "compare_definitions", "send_channel_test"),
    ),
    "a job that ends, with a result of its own": (
        *("start_comparison", "cancel_comparison", "start_search", "cancel_search"),
        *("start_ledger_check", "cancel_ledger_check", "start_replay", "cancel_replay"),
        *("start_drift_analysis", "cancel_drift_analysis", "cancel_import", "make_report"),
        *("start_alert_trial", "cancel_alert_trial"),
    ),
    "a hold or an erasure is decided once, for calls that exist, and never undone by a file": (
        *("set_hold", "release_hold", "start_erasure", "confirm_erasure", "cancel_erasure"),
        "begin_incident",
    ),
    "a draft is work in progress; a file has what is published": (
        *("begin_the_draft", "save_the_draft", "discard_the_draft", "publish_the_draft"),
        "draft_from_drift",
    ),
}
"""Acts that no file repeats, by the reason."""


def test_every_act_has_a_section_or_a_reason() -> None:
    acts = {
        operation["operationId"]
        for methods in description()["paths"].values()
        for method, operation in methods.items()
        if method != "get"
    }
    declared = {act for some in SECTIONS.values() for act in some}
    others = [act for some in NOT_DECLARED.values() for act in some]
    assert len(others) == len(set(others))
    assert not declared & set(others)
    assert acts == declared | set(others)


def test_every_section_has_its_acts() -> None:
    assert SECTIONS.keys() | WITHOUT_ACTS.keys() == DeclaredTenant.model_fields.keys()
    assert not SECTIONS.keys() & WITHOUT_ACTS.keys()
