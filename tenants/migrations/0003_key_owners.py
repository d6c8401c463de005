"""Keys have an owner, a purpose, allowed networks, and scopes for acts.

Older code would accept a key from everywhere, so it must stop.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from config.postgresql.migrations import Step

_SCOPES = [
    ("ingest", "Send events"),
    ("read", "Read figures and calls"),
    ("payloads", "Read payloads as well: arguments, outputs, error messages"),
    ("reveal", "Read the payload of one call or event at a time, each with a reason"),
    ("registry", "Register and change tools: drafts, versions, replays, definitions"),
    ("operate", "Work as an editor: rejected events, polling tools, saved views, checks"),
    ("holds", "Set and release legal holds"),
    ("erase", "Count and erase calls that a query selects"),
    ("admin", "Manage members, keys and settings, as an admin"),
]
_STATE = [
    migrations.AddField(
        "apikey",
        "owner",
        models.ForeignKey(
            blank=True,
            null=True,
            on_delete=django.db.models.deletion.SET_NULL,
            related_name="+",
            to=settings.AUTH_USER_MODEL,
        ),
    ),
    migrations.AddField(
        "apikey",
        "purpose",
        models.CharField(blank=True, db_default="", default="", max_length=300),
    ),
    migrations.AddField(
        "apikey",
        "allowed_addresses",
        django.contrib.postgres.fields.ArrayField(
            base_field=models.CharField(max_length=43), default=list, size=None
        ),
    ),
    migrations.AlterField(
        "apikey",
        "scopes",
        django.contrib.postgres.fields.ArrayField(
            base_field=models.CharField(choices=_SCOPES, max_length=16), size=None
        ),
    ),
]


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_shared_tables")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("key_owners")], state_operations=_STATE
        )
    ]
