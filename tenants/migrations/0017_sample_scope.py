"""The scope of keys with which auditors draw samples. The database has no list of scopes."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

from config.postgresql.migrations import OlderCodeMayGoOn

_SCOPES = [
    ("ingest", "Send events"),
    ("read", "Read figures and calls"),
    ("payloads", "Read payloads as well: arguments, outputs, error messages"),
    ("reveal", "Read the payload of one call or event at a time, each with a reason"),
    ("registry", "Register and change tools: drafts, versions, replays, definitions"),
    ("operate", "Work as an editor: rejected events, polling tools, saved views, checks"),
    ("holds", "Set and release legal holds"),
    ("samples", "Draw samples of calls, and conclude about them, as an auditor"),
    ("erase", "Count and erase calls that a query selects"),
    ("admin", "Manage members, keys and settings, as an admin"),
    ("scim", "Send people and groups of an identity provider's directory (SCIM)"),
]


class Migration(migrations.Migration):
    dependencies = [("tenants", "0016_mail")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "apikey",
                    "scopes",
                    ArrayField(models.CharField(choices=_SCOPES, max_length=16)),
                )
            ]
        ),
        OlderCodeMayGoOn("tenants", "0017_sample_scope"),
    ]
