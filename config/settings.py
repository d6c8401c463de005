"""Django's settings. Every option comes from the environment through `config.env`.

Without DATABASE_URL, the embedded PostgreSQL under `var/` is used (`manage.py up` creates it).
"""

from pathlib import Path
from typing import Any

from django.utils.csp import CSP
from psycopg.conninfo import conninfo_to_dict

from config import env, instance
from config.instance import BASE_DIR as BASE_DIR
from config.postgresql import aliases
from config.postgresql.roles import APP, KEEPER, OWNER

DEBUG = env.boolean("TOOLTRAIL_DEBUG", default=False)
# The placeholder is used only before `up`. `check --deploy` rejects it because of its prefix.
# The file of secrets is read only if needed: a web process gets the key by `child_environment`.
SECRET_KEY = env.text("TOOLTRAIL_SECRET_KEY", "") or instance.load_secrets().get(
    "secret_key", "django-insecure-stand-in"
)
ALLOWED_HOSTS = env.words("TOOLTRAIL_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
CSRF_TRUSTED_ORIGINS = env.words("TOOLTRAIL_ORIGINS")

EVENTS_PER_SECOND: int = env.integer("TOOLTRAIL_EVENTS_PER_SECOND", 0)  # per API key; 0: no limit
# Trusted proxies in front, each of which appends to X-Forwarded-For (`config.http.proxies`).
PROXIES: int = env.integer("TOOLTRAIL_PROXIES", 0)
# The slug of the tenant that has the calls of /mcp; empty: they are not recorded as calls.
MCP_TENANT: str = env.text("TOOLTRAIL_MCP_TENANT", "")
CORS_ORIGINS: list[str] = env.words("TOOLTRAIL_CORS_ORIGINS")
METRICS_DIR = instance.VAR / "metrics"
METRICS_TOKEN = env.text("TOOLTRAIL_METRICS_TOKEN", "")
# Only for the worker: the private key and the last signed state. Web servers do not read it.
LEDGER_DIR = Path(env.text("TOOLTRAIL_LEDGER_DIR", str(instance.VAR / "ledger"))).resolve()
# The private key, if it is not in that folder: each machine that signs has the same.
_ledger_keys = env.text("TOOLTRAIL_LEDGER_KEYS", "")
LEDGER_KEYS = Path(_ledger_keys).resolve() if _ledger_keys else None
# A PKCS#11 token in which new keys are made (`audit.ledger.hsm`).
LEDGER_PKCS11 = env.text("TOOLTRAIL_LEDGER_PKCS11", "")
# Encrypt secrets in the database: of channels for alerts, of second factors.
ENCRYPTION_KEYS = Path(
    env.text("TOOLTRAIL_ENCRYPTION_KEYS", str(instance.VAR / "encryption-keys"))
).resolve()
# Addresses that are not public and to which alerts may be sent all the same.
DELIVERY_ALLOW = env.openings("TOOLTRAIL_DELIVERY_ALLOW")
# Addresses that are not public and at which identity providers may be all the same.
IDENTITY_ALLOW = env.openings("TOOLTRAIL_IDENTITY_ALLOW")
# Addresses that are not public and at which witnesses of ledgers may be all the same.
WITNESS_ALLOW = env.openings("TOOLTRAIL_WITNESS_ALLOW")
# Addresses that are not public and to which streams may be sent all the same.
STREAM_ALLOW = env.openings("TOOLTRAIL_STREAM_ALLOW")
# The archive of sealed days (`audit.archive`); without an address there is none.
ARCHIVE_URL = env.text("TOOLTRAIL_ARCHIVE_URL", "")
ARCHIVE_KEYS_URL = env.text("TOOLTRAIL_ARCHIVE_KEYS_URL", "")
ARCHIVE_REGION = env.text("TOOLTRAIL_ARCHIVE_REGION", "us-east-1")
ARCHIVE_ACCESS_KEY = env.text("TOOLTRAIL_ARCHIVE_ACCESS_KEY", "")
ARCHIVE_SECRET_KEY = env.text("TOOLTRAIL_ARCHIVE_SECRET_KEY", "")
ARCHIVE_LOCK = env.choice("TOOLTRAIL_ARCHIVE_LOCK", "governance", "compliance", "none")
ARCHIVE_LOCK_DAYS: int = env.integer("TOOLTRAIL_ARCHIVE_LOCK_DAYS", 365, minimum=1)
# Addresses that are not public and at which the archive may be all the same.
ARCHIVE_ALLOW = env.openings("TOOLTRAIL_ARCHIVE_ALLOW")
# Keys of pseudonyms after a rotation, the same on each host (`audit.intake.principal_keys`).
PRINCIPAL_KEYS = Path(
    env.text("TOOLTRAIL_PRINCIPAL_KEYS", str(instance.VAR / "principal-keys.json"))
).resolve()
# Part of every log's name, so it must not change after anybody has kept a checkpoint.
LEDGER_HOST = env.text("TOOLTRAIL_LEDGER_HOST", instance.name_of_host(ALLOWED_HOSTS))

INSTALLED_APPS = [
    "config",
    "audit",
    "tools_registry",
    "tenants",
    "django.contrib.admin.apps.SimpleAdminConfig",  # `config.urls` imports ours
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "django_htmx",
    "procrastinate.contrib.django",
]

MIDDLEWARE = [
    "config.http.request_ids.RequestIdMiddleware",
    "config.telemetry.TelemetryMiddleware",
    "config.http.cross_origin.CrossOriginMiddleware",
    "config.http.problems.NotStoredMiddleware",
    "audit.intake.door.IntakeDoor",
    "config.health.HealthMiddleware",
    "config.health.ReadMetricsMiddleware",
    "config.health.OlderCodeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.http.heads.HeadMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # The list of traces has 8 KB instead of 47. Random bytes are added against BREACH.
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "tenants.timezone.TimeZoneMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.http.problems.ProblemMiddleware",
    "config.http.streams.StreamsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "config.http.templates.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


_prepares = env.boolean("TOOLTRAIL_DATABASE_PREPARE", default=True)


def _database(url: str | None, *, is_pooled: bool = False) -> dict[str, Any]:
    parameters = conninfo_to_dict(url or "")
    # A host that disappears without closing the connection must not block a request for minutes.
    limits = {"connect_timeout": "3", "tcp_user_timeout": "10000"}
    return {
        "ENGINE": "config.postgresql",
        "NAME": parameters.pop("dbname", "tooltrail"),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": str(parameters.pop("port", "")),
        "OPTIONS": limits | parameters | ({"pool": {"max_idle": 300.0}} if is_pooled else {}),
        "PREPARE": _prepares,
        # Without a pool: one persistent connection per thread.
        "CONN_MAX_AGE": 0 if is_pooled else None,
        "CONN_HEALTH_CHECKS": True,  # detects a restarted PostgreSQL between requests
    }


# `default` is the application role, bound by row-level security. `owner` (for migrations and
# partitions) and `keeper` (for retention) exist if their URLs are known: `up` gives them to the
# worker and not to the web server, whose threads share a pool (docs/adr/0003). Commands and the
# worker need one connection per thread.
_url = env.text("DATABASE_URL", "")
_is_own = bool(_url)
_owner_url = env.text("DATABASE_OWNER_URL", "") if _is_own else instance.embedded_url(OWNER)
_url = _url or instance.embedded_url(APP) or ""
_is_pooled = env.boolean("TOOLTRAIL_DATABASE_POOL", default=False)
DATABASES = {"default": _database(_url, is_pooled=_is_pooled)}
_keeper_url = env.text("DATABASE_KEEPER_URL", "") if _is_own else instance.embedded_url(KEEPER)
for _alias, _address in ((aliases.OWNER, _owner_url), (aliases.KEEPER, _keeper_url)):
    if _address:
        DATABASES[_alias] = _database(_address)
# Only a worker runs tasks. Imported by every command, they would take a quarter of a second.
PROCRASTINATE_AUTODISCOVER_MODULE_NAME = ""
PROCRASTINATE_IMPORT_PATHS = ["audit.tasks", "tools_registry.tasks", "tenants.tasks"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "tenants.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in {
        "UserAttributeSimilarityValidator": {},
        "MinimumLengthValidator": {"min_length": 12},  # OWASP ASVS 4.0, 2.1.1
        "CommonPasswordValidator": {},
        "NumericPasswordValidator": {},
    }.items()
]
# Mails to people: invitations and links for passwords (`tenants.mail`). Without a host, none.
_mail_host = env.text("TOOLTRAIL_MAIL_HOST", "")
_mail_security = env.choice("TOOLTRAIL_MAIL_SECURITY", "starttls", "tls", "none")
_mail_password = env.text("TOOLTRAIL_MAIL_PASSWORD", "")
if _mail_password and _mail_security == "none":
    _problem = "TOOLTRAIL_MAIL_PASSWORD is not sent without encryption: set TOOLTRAIL_MAIL_SECURITY"
    raise env.EnvironmentVariableError(_problem)
MAILERS: dict[str, dict[str, Any]] = {}
if _mail_host:
    MAILERS["default"] = {
        "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "OPTIONS": {
            "host": _mail_host,
            "port": env.integer(
                "TOOLTRAIL_MAIL_PORT", {"starttls": 587, "tls": 465, "none": 25}[_mail_security]
            ),
            "username": env.text("TOOLTRAIL_MAIL_USER", ""),
            "password": _mail_password,
            "use_tls": _mail_security == "starttls",
            "use_ssl": _mail_security == "tls",
            "timeout": 8,  # seconds: the worker has other things to do
        },
    }
DEFAULT_FROM_EMAIL = env.text("TOOLTRAIL_MAIL_FROM", f"tooltrail@{LEDGER_HOST}")
PASSWORD_RESET_TIMEOUT = 3 * 3600  # seconds that a link for a new password holds
# The one account that signs in without an identity provider; empty: all do, and with one, too.
BREAK_GLASS: str = env.text("TOOLTRAIL_BREAK_GLASS", "")
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "account_login"

# django-allauth carries second factors and passkeys. Our sign-in has its own limits and words.
ACCOUNT_ADAPTER = "tenants.accounts.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300  # seconds that a confirmation is fresh
ACCOUNT_RATE_LIMITS = {
    "login_failed": "5/5m/key",  # wrong codes of an account
    "mail": "60/h/ip,5/h/key",  # mails that somebody asks for, to an address
}
MFA_FORMS = {"add_webauthn": "tenants.accounts.forms.AddPasskeyForm"}
MFA_ADAPTER = "tenants.accounts.adapters.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # there are no addresses
MFA_TOTP_TOLERANCE = 1  # a clock may be half a minute off
USERSESSIONS_TRACK_ACTIVITY = False  # it would write at each request
SOCIALACCOUNT_ADAPTER = "tenants.identity.adapter.IdentityAdapter"
# For the sign-in: wrong and used codes and used assertions, which all processes must know.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "cache_entry",
        "OPTIONS": {"MAX_ENTRIES": 100_000},  # of more, some would be forgotten before their end
    }
}

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = instance.VAR / "static"
WHITENOISE_USE_FINDERS = DEBUG
STORAGES = {
    "staticfiles": {"BACKEND": "config.http.static_storage.StaticStorage"},
}

# Nothing inline: text from an agent must never become a script or a style.
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF, CSP.NONCE],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],  # data: for the icons inside Tabler's style sheet
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
CSRF_FAILURE_VIEW = "config.http.errors.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Set this behind TLS. It turns on everything that depends on TLS.
HTTPS = env.boolean("TOOLTRAIL_HTTPS", default=False)
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = env.integer("TOOLTRAIL_HSTS_SECONDS", 31_536_000) if HTTPS else 0
# Off by default: subdomains would be bound to TLS for the same time.
HSTS_SUBDOMAINS = env.boolean("TOOLTRAIL_HSTS_SUBDOMAINS", default=False)
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS and HSTS_SUBDOMAINS
SECURE_HSTS_PRELOAD = HTTPS and HSTS_SUBDOMAINS
SILENCED_SYSTEM_CHECKS = ["mail.W001"]  # mails are optional
if HTTPS and not HSTS_SUBDOMAINS:
    # The operator decides what `check --deploy` advises here.
    SILENCED_SYSTEM_CHECKS += ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None

TELEMETRY = env.boolean("TOOLTRAIL_TELEMETRY", default=False)
LOG_REQUESTS = env.boolean("TOOLTRAIL_LOG_REQUESTS", default=False)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request id": {"()": "config.http.request_ids.RequestIdFilter"}},
    "formatters": {
        "text": {
            "()": "config.process.log_lines.LineFormatter",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "config.process.log_lines.JsonLineFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": instance.LOG_FORMAT,
            "filters": ["request id"],
        }
    },
    "root": {"handlers": ["console"], "level": env.text("TOOLTRAIL_LOG_LEVEL", "INFO")},
    # At INFO it logs every task at each start of each command.
    "loggers": {"procrastinate": {"level": "WARNING"}},
}
