"""What people and programs may do."""

from django.db import models


class Role(models.TextChoices):
    """What a member may do; `tenants.access` checks it."""

    VIEWER = "viewer", "Viewer"
    EDITOR = "editor", "Editor"
    AUDITOR = "auditor", "Auditor"
    ADMIN = "admin", "Admin"


class Scope(models.TextChoices):
    """What an API key gives access to."""

    INGEST = "ingest", "Send events"
    READ = "read", "Read figures and calls"
    PAYLOADS = "payloads", "Read payloads as well: arguments, outputs, error messages"
    REVEAL = "reveal", "Read the payload of one call or event at a time, each with a reason"
    REGISTRY = "registry", "Register and change tools: drafts, versions, replays, definitions"
    OPERATE = "operate", "Work as an editor: rejected events, polling tools, saved views, checks"
    HOLDS = "holds", "Set and release legal holds"
    SAMPLES = "samples", "Draw samples of calls, and conclude about them, as an auditor"
    ERASE = "erase", "Count and erase calls that a query selects"
    ADMIN = "admin", "Manage members, keys and settings, as an admin"
    SCIM = "scim", "Send people and groups of an identity provider's directory (SCIM)"
