from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

SCOPES = [
    ("ingest", "Send events"),
    ("read", "Read figures and calls"),
    ("payloads", "Read payloads, too: arguments, outputs, error messages"),
    ("registry", "Register tools"),
]


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_settings")]
    operations = [
        migrations.AlterField(
            model_name="apikey",
            name="scopes",
            field=ArrayField(base_field=models.CharField(choices=SCOPES, max_length=16), size=None),
        )
    ]
