from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn

_INDEX_ANEW = """
    DROP INDEX invocation_run_idx;
    CREATE INDEX invocation_run_idx ON invocation (tenant_id, run_id) WHERE run_id IS NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0016_plain_policies")]
    operations = [
        migrations.RunSQL(_INDEX_ANEW, _INDEX_ANEW),
        OlderCodeMayGoOn("audit", "0017_later"),
    ]
