"""An index of the actions that announce keys of statements: older code need not know it."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0012_anonymous_links")]
    operations = [
        Step("statement_keys"),
        OlderCodeMayGoOn("tenants", "0013_statement_keys"),
    ]
