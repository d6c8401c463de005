"""Tenants, people, keys and actions: creates the tables of `schema/*.sql`, in the order below."""

import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import tenants.models
from config.postgresql.migrations import SchemaFiles

_MODELS = [
    migrations.CreateModel(
        name="Tenant",
        fields=[
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("slug", models.SlugField(max_length=63, unique=True)),
            ("name", models.CharField(max_length=200)),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("time_zone", models.CharField(blank=True, default="", max_length=64)),
            ("suspended_at", models.DateTimeField(blank=True, null=True)),
        ],
        options={"db_table": "tenant"},
    ),
    migrations.CreateModel(
        name="Tombstone",
        fields=[
            ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
            ("slug", models.CharField(max_length=63)),
            ("name", models.CharField(max_length=200)),
            ("begun_at", models.DateTimeField(auto_now_add=True)),
            ("ended_at", models.DateTimeField(null=True)),
            ("operator", models.CharField(max_length=150)),
            ("ledger_size", models.BigIntegerField()),
            ("ledger_root", models.BinaryField()),
        ],
        options={"db_table": "tombstone"},
    ),
    migrations.CreateModel(
        name="User",
        fields=[
            (
                "id",
                models.BigAutoField(
                    auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                ),
            ),
            ("password", models.CharField(max_length=128, verbose_name="password")),
            ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
            (
                "is_superuser",
                models.BooleanField(
                    default=False,
                    help_text="Designates that this user has all permissions without explicitly assigning them.",
                    verbose_name="superuser status",
                ),
            ),
            (
                "username",
                models.CharField(
                    error_messages={"unique": "A user with that username already exists."},
                    help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                    max_length=150,
                    unique=True,
                    validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                    verbose_name="username",
                ),
            ),
            ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
            ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
            ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
            (
                "is_staff",
                models.BooleanField(
                    default=False,
                    help_text="Designates whether the user can log into this admin site.",
                    verbose_name="staff status",
                ),
            ),
            (
                "is_active",
                models.BooleanField(
                    default=True,
                    help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                    verbose_name="active",
                ),
            ),
            (
                "date_joined",
                models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined"),
            ),
            ("time_zone", models.CharField(blank=True, default="", max_length=64)),
            ("theme", models.CharField(blank=True, default="", max_length=8)),
            ("default_range", models.CharField(blank=True, default="", max_length=8)),
            ("has_initial_password", models.BooleanField(db_default=False, default=False)),
            (
                "groups",
                models.ManyToManyField(
                    blank=True,
                    help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                    related_name="user_set",
                    related_query_name="user",
                    to="auth.group",
                    verbose_name="groups",
                ),
            ),
            (
                "user_permissions",
                models.ManyToManyField(
                    blank=True,
                    help_text="Specific permissions for this user.",
                    related_name="user_set",
                    related_query_name="user",
                    to="auth.permission",
                    verbose_name="user permissions",
                ),
            ),
            (
                "last_tenant",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
        ],
        options={"db_table": "app_user"},
        managers=[("objects", django.contrib.auth.models.UserManager())],
    ),
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
    migrations.CreateModel(
        name="TenantSetting",
        fields=[
            (
                "tenant",
                models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    primary_key=True,
                    related_name="+",
                    serialize=False,
                    to="tenants.tenant",
                ),
            ),
            ("payload_days", models.IntegerField(blank=True, null=True)),
            ("index_days", models.IntegerField(blank=True, null=True)),
            (
                "redact_names",
                django.contrib.postgres.fields.ArrayField(
                    base_field=models.TextField(), default=list
                ),
            ),
            (
                "redact_patterns",
                django.contrib.postgres.fields.ArrayField(
                    base_field=models.TextField(), default=list
                ),
            ),
            ("redact_otlp", models.BooleanField(db_default=True, default=True)),
            ("erased_to", models.BigIntegerField(default=0)),
            ("index_from", models.DateField(blank=True, null=True)),
        ],
        options={"db_table": "tenant_setting"},
    ),
    migrations.CreateModel(
        name="Invitation",
        fields=[
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("label", models.CharField(max_length=150)),
            (
                "role",
                models.CharField(
                    choices=[
                        ("viewer", "Viewer"),
                        ("editor", "Editor"),
                        ("auditor", "Auditor"),
                        ("admin", "Admin"),
                    ],
                    max_length=16,
                ),
            ),
            ("token_sha256", models.BinaryField()),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("expires_at", models.DateTimeField()),
            ("accepted_at", models.DateTimeField(null=True)),
            ("revoked_at", models.DateTimeField(null=True)),
            (
                "created_by",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            (
                "tenant",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
        ],
        options={"db_table": "invitation"},
    ),
    migrations.CreateModel(
        name="Action",
        fields=[
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("at", models.DateTimeField(auto_now_add=True)),
            ("user_id", models.BigIntegerField(null=True)),
            ("user_name", models.CharField(max_length=150)),
            ("verb", models.CharField(max_length=64)),
            ("subject", models.CharField(max_length=300)),
            ("details", models.JSONField(default=dict)),
            ("rows", models.JSONField(default=dict)),
            ("ledger_index", models.BigIntegerField(null=True)),
            (
                "tenant",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
        ],
        options={"db_table": "action"},
    ),
    migrations.CreateModel(
        name="Membership",
        fields=[
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            (
                "role",
                models.CharField(
                    choices=[
                        ("viewer", "Viewer"),
                        ("editor", "Editor"),
                        ("auditor", "Auditor"),
                        ("admin", "Admin"),
                    ],
                    max_length=16,
                ),
            ),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            (
                "tenant",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
        ],
        options={
            "db_table": "membership",
            "constraints": [
                models.UniqueConstraint(
                    fields=("tenant", "user"), name="membership_tenant_user_uniq"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="ApiKey",
        fields=[
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("key_id", models.CharField(max_length=16)),
            ("name", models.CharField(max_length=100)),
            ("secret_sha256", models.BinaryField()),
            (
                "scopes",
                django.contrib.postgres.fields.ArrayField(
                    base_field=models.CharField(
                        choices=[
                            ("ingest", "Send events"),
                            ("read", "Read figures and calls"),
                            (
                                "payloads",
                                "Read payloads as well: arguments, outputs, error messages",
                            ),
                            ("registry", "Register tools"),
                        ],
                        max_length=16,
                    )
                ),
            ),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("expires_at", models.DateTimeField(blank=True, null=True)),
            ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ("last_used_at", models.DateTimeField(blank=True, null=True)),
            ("replaced_by_id", models.UUIDField(blank=True, null=True)),
            (
                "created_by",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            (
                "tenant",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
        ],
        options={
            "db_table": "api_key",
            "constraints": [
                models.UniqueConstraint(
                    fields=("tenant", "key_id"), name="api_key_tenant_key_id_uniq"
                )
            ],
        },
    ),
]

_REPLACED = [
    "0001_initial",
    "0002_sign_in_failure",
    "0003_tenants_stay",
    "0004_settings",
    "0005_payload_scope",
    "0006_action_entry",
    "0007_reveal_index",
    "0008_tolerated_migration",
    "0009_redact_otlp",
    "0010_invitation",
    "0001_schema",
    "0003_no_superusers",
    "0004_action_rows",
]
"""They are no longer here. An installation that has all of them has these tables."""


class Migration(migrations.Migration):
    initial = True
    replaces = [("tenants", name) for name in _REPLACED]
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                SchemaFiles("tenants", "people", "keys_and_actions", "installation")
            ],
            state_operations=_MODELS,
        )
    ]
