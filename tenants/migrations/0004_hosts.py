"""What hosts on one database know of each other. Older code is not heard, and has its own quotas."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_key_owners")]
    operations = [Step("hosts"), OlderCodeMayGoOn("tenants", "0004_hosts")]
