"""The pages of the reference that are made from code. Import it after `django.setup()`."""

from docs.site.reference.api import api
from docs.site.reference.commands import commands
from docs.site.reference.events import events
from docs.site.reference.ledger import ledger
from docs.site.reference.metrics import metrics
from docs.site.reference.queries import queries
from docs.site.reference.settings import settings

GENERATED = {
    "reference/api": api,
    "reference/commands": commands,
    "reference/events": events,
    "reference/ledger": ledger,
    "reference/metrics": metrics,
    "reference/queries": queries,
    "reference/settings": settings,
}


def pages() -> dict[str, str]:
    """The Markdown of each generated page, by its name on the site."""
    return {name: "\n".join(lines()) for name, lines in GENERATED.items()}
