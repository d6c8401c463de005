"""Identity providers that speak SAML. Older code would take them for OpenID Connect, so it must stop."""

from django.db import migrations, models

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0013_statement_keys")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("saml")],
            state_operations=[
                migrations.AlterField(
                    "identityprovider",
                    "kind",
                    models.CharField(
                        choices=[("oidc", "OpenID Connect"), ("saml", "SAML 2.0")], max_length=8
                    ),
                ),
            ],
        )
    ]
