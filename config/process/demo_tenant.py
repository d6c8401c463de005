"""What `manage.py up --demo` gives its tenant beside calls: a price list, alert rules, a board."""

from datetime import timedelta
from decimal import Decimal

from django.utils import timezone

from audit.alerts.rules import Rule
from audit.alerts.stored import all_rules, save_rule
from audit.demo.prices import MODELS, TOOLS
from audit.demo.watched import BOARD, RULES
from audit.prices.lists import save_list
from audit.queries.boards import BoardPage, boards_of, save_board
from audit.queries.price_lists import ModelPrice, ToolPrice, all_lists
from tenants.models import Tenant, User
from tenants.scope import tenant_scope


def furnish(tenant: Tenant, user: User) -> None:
    """Make each of them, unless the tenant has one of its kind already."""
    now = timezone.now()
    with tenant_scope(tenant.id):
        if not all_lists():
            save_list(
                tenant,
                user,
                (now - timedelta(days=7)).date(),
                "USD",
                [ToolPrice(tool, Decimal(amount), path) for tool, (amount, path) in TOOLS.items()],
                now,
                models=[
                    ModelPrice(model, Decimal(took), Decimal(gave), Decimal(cached))
                    for model, (took, cached, gave) in MODELS.items()
                ],
            )
        if not all_rules():
            for rule in RULES:
                save_rule(tenant, user, Rule.model_validate(rule), now)
        if not boards_of(None):
            save_board(None, BoardPage.model_validate(BOARD), None, user, now)
