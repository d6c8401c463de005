"""Second factors, sessions, and what a tenant asks of them; tables of django-allauth."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

from config.postgresql.migrations import LibraryTables, Step


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0005_clear_principals"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("usersessions", "0001_initial"),
    ]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("sign_in")],
            state_operations=[
                migrations.AddField(
                    "tenant",
                    "second_factor_roles",
                    ArrayField(models.CharField(max_length=8), blank=True, default=list),
                ),
                migrations.AddField(
                    "tenant", "step_up", models.BooleanField(default=False, db_default=False)
                ),
                migrations.AddField(
                    "tenant",
                    "session_idle_minutes",
                    models.IntegerField(blank=True, null=True),
                ),
                migrations.AddField(
                    "tenant", "session_max_hours", models.IntegerField(blank=True, null=True)
                ),
            ],
        ),
        LibraryTables("sign_in_tables"),
    ]
