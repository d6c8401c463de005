from django.db import migrations


class Migration(migrations.Migration):
    """Deleting a tenant would take its actions along: as the owner, whatever the grants on them."""

    dependencies = [
        ("tenants", "0002_sign_in_failure"),
    ]

    operations = [
        migrations.RunSQL(
            "REVOKE DELETE ON tenant FROM tooltrail_app",
            "GRANT DELETE ON tenant TO tooltrail_app",
        ),
    ]
