from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="SignInFailure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.BinaryField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "sign_in_failure",
                "indexes": [
                    models.Index(fields=["digest", "at"], name="sign_in_failure_digest_at_idx")
                ],
            },
        ),
    ]
