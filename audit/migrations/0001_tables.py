"""Log, index, ledger and work on calls: the tables are `schema/*.sql`, in the order below."""

from django.db import migrations

from config.postgresql.migrations import SchemaFiles

_MODELS = {
    "Batch": "batch",
    "DriftAnalysis": "tool_drift",
    "Erasure": "erasure",
    "ErasureCall": "erasure_call",
    "Gap": "gap",
    "Invocation": "invocation",
    "LedgerCheck": "ledger_check",
    "LedgerCheckpoint": "ledger_checkpoint",
    "LedgerErasure": "ledger_erasure",
    "LedgerKey": "ledger_key",
    "LegalHold": "legal_hold",
    "PayloadHit": "payload_search_hit",
    "PayloadSearch": "payload_search",
    "PollingTool": "polling_tool",
    "Producer": "producer",
    "RejectedEvent": "rejected_event",
    "Replay": "tool_replay",
    "SavedView": "saved_view",
    "StoredDefinition": "definition",
    "StoredDefinitionChange": "definition_change",
    "StoredReport": "report",
    "StoredReportSchedule": "report_schedule",
    "StoredServedDefinition": "served_definition",
    "Trace": "trace",
    "Violation": "violation",
}
"""Models and their tables. Django manages none of them, so their fields need not be here."""

_REPLACED = [
    "0001_log",
    "0002_index",
    "0003_models",
    "0004_inbox",
    "0005_otlp",
    "0006_orphan_index",
    "0007_saved_view",
    "0008_payload_search",
    "0009_cheaper_sums",
    "0010_violation_day",
    "0011_histogram_number",
    "0012_polling_tool",
    "0013_merged_calls",
    "0014_report",
    "0015_wide_rollup",
    "0016_ledger",
    "0017_replay",
    "0018_ledger_check",
    "0019_hold",
    "0020_failed_calls",
    "0021_erasure",
    "0022_drift",
    "0023_quarter_rollup",
    "0024_searches_end",
    "0025_error_codes",
    "0026_runs_by_name",
    "0027_type_not_quoted",
    "0001_schema",
    "0002_span_findings",
    "0003_decision",
    "0004_definition",
    "0005_call_states",
    "0006_mcp_peers",
    "0007_decision_indexes",
    "0008_baseline",
    "0009_span_context",
    "0010_withdrawn_approvals",
    "0011_reported_context",
    "0012_skipped_span",
    "0013_proved_definitions",
    "0014_plain_names",
    "0015_erased_users",
    "0016_plain_policies",
]
"""They are no longer here. An installation that has all of them has these tables."""


class Migration(migrations.Migration):
    initial = True
    replaces = [("audit", name) for name in _REPLACED]
    dependencies = [("tenants", "0001_tables"), ("tools_registry", "0001_tables")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                SchemaFiles(
                    "log",
                    "index",
                    "sums",
                    "definitions",
                    "ledger",
                    "registry_links",
                    "work",
                    "alerts",
                    "deliveries",
                    "prices",
                    "notes",
                    "share_links",
                    "regression_sets",
                    "streams",
                    "samples",
                    "archive",
                    "incidents",
                )
            ],
            state_operations=[
                migrations.CreateModel(name, [], {"db_table": table, "managed": False})
                for name, table in _MODELS.items()
            ],
        )
    ]
