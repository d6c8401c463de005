"""An index of spans has the ids of their calls, too."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0026_incidents")]
    operations = [
        Step("span_call_ids"),
        OlderCodeMayGoOn("audit", "0027_span_call_ids"),
    ]
