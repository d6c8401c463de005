"""The pages of `audit`."""

from django.urls import path, register_converter

from audit.pages.actions.views import action_export, action_list
from audit.pages.agents.views import agent_list
from audit.pages.alerts.alert_list import (
    alert_acknowledge,
    alert_detail,
    alert_list,
    alert_resolve,
)
from audit.pages.alerts.maintenance import (
    maintenance_delete,
    maintenance_list,
    maintenance_new,
)
from audit.pages.alerts.rule_list import (
    rule_delete,
    rule_edit,
    rule_event,
    rule_list,
    rule_mute,
    rule_new,
    rule_starter,
)
from audit.pages.alerts.trials import trial_cancel, trial_detail
from audit.pages.apart.arguments import arguments_cancel, arguments_detail, arguments_start
from audit.pages.apart.compare import compare_page
from audit.pages.apart.views import apart_page
from audit.pages.approvals.views import approval_export, approval_list
from audit.pages.boards.views import (
    board_delete,
    board_detail,
    board_edit,
    board_list,
    board_new,
)
from audit.pages.calls.call_chart import call_chart
from audit.pages.calls.call_detail import call_detail, call_event, call_reveal
from audit.pages.calls.call_export import call_export
from audit.pages.calls.call_list import (
    call_complete,
    call_count,
    call_list,
    call_tail,
)
from audit.pages.calls.handoff import call_handoff, query_handoff
from audit.pages.calls.open_list import open_list
from audit.pages.calls.payload_search import search_cancel, search_detail, search_start
from audit.pages.channels.views import (
    channel_delete,
    channel_detail,
    channel_list,
    channel_new,
    channel_test,
)
from audit.pages.conversations.views import conversation_detail, conversation_list
from audit.pages.costs.views import cost_export, cost_page
from audit.pages.definitions.views import (
    definition_approve,
    definition_detail,
    definition_list,
    definition_withdraw,
    definitions_approve,
)
from audit.pages.evidence.views import evidence_bundle, evidence_page
from audit.pages.first_steps.views import first_key, first_steps
from audit.pages.inbox.views import (
    inbox_detail,
    inbox_discard,
    inbox_discard_all,
    inbox_export,
    inbox_list,
    inbox_reveal,
    inbox_send,
)
from audit.pages.incidents.views import incident_detail, incident_evidence, incident_list
from audit.pages.latency.views import latency_export, latency_newest, latency_page
from audit.pages.ledger.views import (
    check_cancel,
    check_detail,
    check_start,
    checkpoint_note,
    ledger_consistency,
    ledger_entry,
    ledger_key_set,
    ledger_keys,
    ledger_page,
    ledger_proof,
    ledger_statement,
)
from audit.pages.notes.views import (
    note_change,
    note_delete,
    note_detail,
    note_list,
    note_new,
)
from audit.pages.overview.views import home
from audit.pages.palette.views import palette
from audit.pages.prices.views import (
    price_list_delete,
    price_list_detail,
    price_list_list,
    price_list_new,
)
from audit.pages.repeats.views import (
    polling_add,
    polling_remove,
    repeat_export,
    repeat_page,
    repeat_results,
)
from audit.pages.reports.views import (
    clauses_export,
    report_again,
    report_clauses,
    report_create,
    report_detail,
    report_export,
    report_list,
    report_schedule,
)
from audit.pages.samples.views import (
    sample_cancel,
    sample_conclude,
    sample_detail,
    sample_draw,
    sample_evidence,
    sample_list,
    sample_return,
    sample_sign,
    sample_witness,
)
from audit.pages.settings.erasures import (
    erasure_cancel,
    erasure_confirm,
    erasure_detail,
    erasure_list,
    erasure_start,
)
from audit.pages.settings.floor import (
    floor_approve,
    floor_page,
    floor_raise,
    floor_refuse,
    floor_request,
)
from audit.pages.settings.holds import hold_list, hold_release
from audit.pages.settings.views import redaction_settings, tenant_settings
from audit.pages.settings.witnesses import witness_settings
from audit.pages.sharing.opened import shared
from audit.pages.sharing.views import share_list, share_new, share_payloads, share_revoke
from audit.pages.skipped.views import skipped_list
from audit.pages.streams.views import (
    stream_change,
    stream_delete,
    stream_detail,
    stream_list,
    stream_new,
    stream_no_payloads,
    stream_pause,
    stream_payloads,
    stream_replay,
    stream_resume,
    stream_schema,
    stream_test,
)
from audit.pages.tools.draft_review import draft_publish, draft_review
from audit.pages.tools.drift import (
    drift_cancel,
    drift_draft,
    drift_page,
    drift_start,
)
from audit.pages.tools.effect import effect_page
from audit.pages.tools.regression import (
    regression_set,
    regression_set_make,
    regression_set_remove,
)
from audit.pages.tools.replays import replay_cancel, replay_detail, replay_start
from audit.pages.tools.tool_list import tool_list
from audit.pages.tools.tool_overview import tool_overview
from audit.pages.traces.compare import trace_compare
from audit.pages.traces.trace_chart import trace_chart
from audit.pages.traces.trace_detail import trace_as_text, trace_detail
from audit.pages.traces.trace_graph import trace_graph
from audit.pages.traces.trace_list import trace_list
from audit.pages.views.views import (
    columns_save,
    view_change,
    view_default,
    view_delete,
    view_save,
)
from audit.pages.violations.views import violation_export, violation_list
from audit.show.converters import DayConverter, FreeTextConverter

register_converter(DayConverter, "day")
register_converter(FreeTextConverter, "text")

urlpatterns = [
    path("", home, name="home"),
    path("go/", palette, name="palette"),
    path("first-steps/", first_steps, name="first_steps"),
    path("first-steps/key", first_key, name="first_key"),
    # /traces
    path("traces/", trace_list, name="trace_list"),
    path("boards/", board_list, name="board_list"),
    path("boards/new", board_new, name="board_new"),
    path("boards/<uuid:pk>", board_detail, name="board_detail"),
    path("boards/<uuid:pk>/edit", board_edit, name="board_edit"),
    path("boards/<uuid:pk>/delete", board_delete, name="board_delete"),
    path("charts/traces", trace_chart, name="trace_chart"),
    path("traces/<text:trace_id>", trace_detail, name="trace_detail"),
    path("traces/<text:trace_id>/graph", trace_graph, name="trace_graph"),
    path("traces/<text:trace_id>/text", trace_as_text, name="trace_text"),
    path("traces/<text:trace_id>/compare", trace_compare, name="trace_compare"),
    # /calls
    path("calls/", call_list, name="call_list"),
    path("charts/calls", call_chart, name="call_chart"),
    path("calls/complete", call_complete, name="call_complete"),
    path("calls/count", call_count, name="call_count"),
    path("calls/export.<slug:kind>", call_export, name="call_export"),
    path("calls/handoff", query_handoff, name="query_handoff"),
    path("calls/open", open_list, name="open_list"),
    path("calls/search", search_start, name="search_start"),
    path("calls/search/<uuid:pk>", search_detail, name="search_detail"),
    path("calls/search/<uuid:pk>/cancel", search_cancel, name="search_cancel"),
    path("calls/tail", call_tail, name="call_tail"),
    path("calls/<day:started_on>/<uuid:invocation_id>", call_detail, name="call_detail"),
    path("calls/<day:started_on>/<uuid:invocation_id>/handoff", call_handoff, name="call_handoff"),
    path("calls/<day:started_on>/<uuid:invocation_id>/reveal", call_reveal, name="call_reveal"),
    path("calls/<day:started_on>/<uuid:invocation_id>/<slug:kind>", call_event, name="call_event"),
    # /tools; the registry has the pages of one tool
    path("tools/", tool_list, name="tool_list"),
    # /apart
    path("compare/", compare_page, name="compare_page"),
    path("apart/", apart_page, name="apart_page"),
    path("apart/arguments", arguments_start, name="arguments_start"),
    path("apart/arguments/<uuid:pk>", arguments_detail, name="arguments_detail"),
    path("apart/arguments/<uuid:pk>/cancel", arguments_cancel, name="arguments_cancel"),
    # /definitions
    path("definitions/", definition_list, name="definition_list"),
    path("definitions/<uuid:pk>", definition_detail, name="definition_detail"),
    path("definitions/approve", definitions_approve, name="definitions_approve"),
    path("definitions/<uuid:pk>/approve", definition_approve, name="definition_approve"),
    path("definitions/<uuid:pk>/withdraw", definition_withdraw, name="definition_withdraw"),
    # /approvals
    path("approvals/", approval_list, name="approval_list"),
    path("approvals/export.<slug:kind>", approval_export, name="approval_export"),
    # /alerts
    path("alerts/", alert_list, name="alert_list"),
    path("alerts/<uuid:pk>", alert_detail, name="alert_detail"),
    path("alerts/<uuid:pk>/acknowledge", alert_acknowledge, name="alert_acknowledge"),
    path("alerts/<uuid:pk>/resolve", alert_resolve, name="alert_resolve"),
    path("alerts/maintenance/", maintenance_list, name="maintenance_list"),
    path("alerts/maintenance/new", maintenance_new, name="maintenance_new"),
    path("alerts/maintenance/<uuid:pk>/delete", maintenance_delete, name="maintenance_delete"),
    path("alerts/rules/", rule_list, name="alert_rule_list"),
    path("alerts/rules/event", rule_event, name="alert_rule_event"),
    path("alerts/rules/new", rule_new, name="alert_rule_new"),
    path("alerts/rules/starter", rule_starter, name="alert_rule_starter"),
    path("alerts/trials/<uuid:pk>", trial_detail, name="alert_trial"),
    path("alerts/trials/<uuid:pk>/cancel", trial_cancel, name="alert_trial_cancel"),
    path("alerts/rules/<uuid:pk>", rule_edit, name="alert_rule_edit"),
    path("alerts/rules/<uuid:pk>/delete", rule_delete, name="alert_rule_delete"),
    path("alerts/rules/<uuid:pk>/mute", rule_mute, name="alert_rule_mute"),
    # /notes
    path("notes/", note_list, name="note_list"),
    path("notes/new", note_new, name="note_new"),
    path("notes/<uuid:pk>", note_detail, name="note_detail"),
    path("notes/<uuid:pk>/change", note_change, name="note_change"),
    path("notes/<uuid:pk>/delete", note_delete, name="note_delete"),
    # /agents
    path("agents/", agent_list, name="agent_list"),
    # /conversations
    path("conversations/", conversation_list, name="conversation_list"),
    path("conversations/<text:run_id>", conversation_detail, name="conversation_detail"),
    # /costs
    path("costs/", cost_page, name="cost_page"),
    path("costs/export.<slug:kind>", cost_export, name="cost_export"),
    # /views
    path("views/", view_save, name="view_save"),
    path("views/<uuid:pk>/change", view_change, name="view_change"),
    path("views/<uuid:pk>/default", view_default, name="view_default"),
    path("views/<uuid:pk>/delete", view_delete, name="view_delete"),
    path("views/columns", columns_save, name="columns_save"),
    # /violations
    path("violations/", violation_list, name="violation_list"),
    path("violations/export.<slug:kind>", violation_export, name="violation_export"),
    # /latency
    path("latency/", latency_page, name="latency_page"),
    path("latency/newest", latency_newest, name="latency_newest"),
    path("latency/export.<slug:kind>", latency_export, name="latency_export"),
    # /repeats
    path("repeats/", repeat_page, name="repeat_page"),
    path("repeats/results", repeat_results, name="repeat_results"),
    path("repeats/export.<slug:kind>", repeat_export, name="repeat_export"),
    path("repeats/polling", polling_add, name="polling_add"),
    path("repeats/polling/remove", polling_remove, name="polling_remove"),
    # /reports
    path("reports/", report_list, name="report_list"),
    path("reports/create", report_create, name="report_create"),
    path("reports/schedule", report_schedule, name="report_schedule"),
    path("reports/<uuid:pk>", report_detail, name="report_detail"),
    path("reports/<uuid:pk>/clauses", report_clauses, name="report_clauses"),
    path("reports/<uuid:pk>/clauses.<slug:kind>", clauses_export, name="clauses_export"),
    path("reports/<uuid:pk>/again", report_again, name="report_again"),
    path("reports/<uuid:pk>/export.<slug:kind>", report_export, name="report_export"),
    # /ledger
    path("ledger/", ledger_page, name="ledger_page"),
    path("ledger/check", check_start, name="ledger_check_start"),
    path("ledger/check/<uuid:pk>", check_detail, name="ledger_check"),
    path("ledger/check/<uuid:pk>/cancel", check_cancel, name="ledger_check_cancel"),
    path("ledger/checkpoints/<int:epoch>/<int:size>", checkpoint_note, name="ledger_checkpoint"),
    path("ledger/consistency", ledger_consistency, name="ledger_consistency"),
    path("ledger/entries/<int:index>", ledger_entry, name="ledger_entry"),
    path("ledger/entries/<int:index>.tlog-proof", ledger_proof, name="ledger_proof"),
    path("ledger/entries/<int:index>.cose", ledger_statement, name="ledger_statement"),
    path("ledger/keys", ledger_keys, name="ledger_keys"),
    path("ledger/keys.jwks", ledger_key_set, name="ledger_key_set"),
    # /actions
    path("actions/", action_list, name="action_list"),
    path("actions/export.<slug:kind>", action_export, name="action_export"),
    # /evidence
    path("evidence/", evidence_page, name="evidence_page"),
    path("evidence/bundle.zip", evidence_bundle, name="evidence_bundle"),
    # /incidents
    path("incidents/", incident_list, name="incident_list"),
    path("incidents/<uuid:pk>", incident_detail, name="incident_detail"),
    path("incidents/<uuid:pk>/evidence.zip", incident_evidence, name="incident_evidence"),
    # /samples
    path("samples/", sample_list, name="sample_list"),
    path("samples/<uuid:pk>", sample_detail, name="sample_detail"),
    path("samples/<uuid:pk>/cancel", sample_cancel, name="sample_cancel"),
    path("samples/<uuid:pk>/witness", sample_witness, name="sample_witness"),
    path("samples/<uuid:pk>/draw", sample_draw, name="sample_draw"),
    path("samples/<uuid:pk>/calls/<int:position>", sample_conclude, name="sample_conclude"),
    path("samples/<uuid:pk>/sign", sample_sign, name="sample_sign"),
    path("samples/<uuid:pk>/return", sample_return, name="sample_return"),
    path("samples/<uuid:pk>/evidence.zip", sample_evidence, name="sample_evidence"),
    # /inbox
    path("inbox/", inbox_list, name="inbox_list"),
    path("inbox/discard", inbox_discard_all, name="inbox_discard_all"),
    path("inbox/export.<slug:kind>", inbox_export, name="inbox_export"),
    path("inbox/<uuid:pk>", inbox_detail, name="inbox_detail"),
    path("inbox/<uuid:pk>/reveal", inbox_reveal, name="inbox_reveal"),
    path("inbox/<uuid:pk>/send", inbox_send, name="inbox_send"),
    path("inbox/<uuid:pk>/discard", inbox_discard, name="inbox_discard"),
    # /share
    path("s/<str:token>", shared, name="shared"),
    path("share/", share_list, name="share_list"),
    path("share/new", share_new, name="share_new"),
    path("share/<uuid:pk>/payloads", share_payloads, name="share_payloads"),
    path("share/<uuid:pk>/revoke", share_revoke, name="share_revoke"),
    # /skipped
    path("skipped/", skipped_list, name="skipped_list"),
    # /tools, pages that read the log
    path("tools/<uuid:pk>/overview", tool_overview, name="tool_overview"),
    path("tools/<uuid:pk>/draft/review", draft_review, name="draft_review"),
    path("tools/<uuid:pk>/draft/publish", draft_publish, name="draft_publish"),
    path("tools/<uuid:pk>/replays", replay_start, name="replay_start"),
    path("tools/<uuid:pk>/replays/<uuid:replay_id>", replay_detail, name="replay_detail"),
    path("tools/<uuid:pk>/replays/<uuid:replay_id>/cancel", replay_cancel, name="replay_cancel"),
    path("tools/<uuid:pk>/regression-set", regression_set, name="regression_set"),
    path("tools/<uuid:pk>/regression-set/make", regression_set_make, name="regression_set_make"),
    path(
        "tools/<uuid:pk>/regression-set/remove",
        regression_set_remove,
        name="regression_set_remove",
    ),
    path("tools/<uuid:pk>/drift", drift_page, name="tool_drift"),
    path("tools/<uuid:pk>/drift/analyze", drift_start, name="drift_start"),
    path(
        "tools/<uuid:pk>/drift/analyses/<uuid:analysis_id>/cancel",
        drift_cancel,
        name="drift_cancel",
    ),
    path("tools/<uuid:pk>/drift/draft", drift_draft, name="drift_draft"),
    path("tools/<uuid:pk>/effect", effect_page, name="tool_effect"),
    # /settings
    path("settings/tenant", tenant_settings, name="tenant_settings"),
    path("settings/redaction", redaction_settings, name="redaction_settings"),
    path("settings/witnesses", witness_settings, name="witness_settings"),
    path("settings/erasures", erasure_list, name="erasure_list"),
    path("settings/erasures/start", erasure_start, name="erasure_start"),
    path("settings/erasures/<uuid:pk>", erasure_detail, name="erasure_detail"),
    path("settings/erasures/<uuid:pk>/confirm", erasure_confirm, name="erasure_confirm"),
    path("settings/erasures/<uuid:pk>/cancel", erasure_cancel, name="erasure_cancel"),
    path("settings/streams", stream_list, name="stream_list"),
    path("settings/streams/new/<slug:way>", stream_new, name="stream_new"),
    path("settings/streams/<uuid:pk>", stream_detail, name="stream_detail"),
    path("settings/streams/<uuid:pk>/change", stream_change, name="stream_change"),
    path("settings/streams/<uuid:pk>/test", stream_test, name="stream_test"),
    path("settings/streams/<uuid:pk>/pause", stream_pause, name="stream_pause"),
    path("settings/streams/<uuid:pk>/resume", stream_resume, name="stream_resume"),
    path("settings/streams/<uuid:pk>/replay", stream_replay, name="stream_replay"),
    path("settings/streams/<uuid:pk>/payloads", stream_payloads, name="stream_payloads"),
    path("settings/streams/<uuid:pk>/no-payloads", stream_no_payloads, name="stream_no_payloads"),
    path("settings/streams/<uuid:pk>/delete", stream_delete, name="stream_delete"),
    path("schemas/<slug:name>.json", stream_schema, name="stream_schema"),
    path("settings/channels", channel_list, name="channel_list"),
    path("settings/channels/new/<slug:kind>", channel_new, name="channel_new"),
    path("settings/channels/<uuid:pk>", channel_detail, name="channel_detail"),
    path("settings/channels/<uuid:pk>/test", channel_test, name="channel_test"),
    path("settings/channels/<uuid:pk>/delete", channel_delete, name="channel_delete"),
    path("settings/prices", price_list_list, name="price_list_list"),
    path("settings/prices/new", price_list_new, name="price_list_new"),
    path("settings/prices/<day:holds_from>", price_list_detail, name="price_list_detail"),
    path("settings/prices/<day:holds_from>/delete", price_list_delete, name="price_list_delete"),
    path("settings/floor", floor_page, name="floor_page"),
    path("settings/floor/raise", floor_raise, name="floor_raise"),
    path("settings/floor/request", floor_request, name="floor_request"),
    path("settings/floor/<uuid:pk>/approve", floor_approve, name="floor_approve"),
    path("settings/floor/<uuid:pk>/refuse", floor_refuse, name="floor_refuse"),
    path("settings/holds", hold_list, name="hold_list"),
    path("settings/holds/<uuid:pk>/release", hold_release, name="hold_release"),
]
