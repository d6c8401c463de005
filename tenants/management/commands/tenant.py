"""`manage.py tenant create NAME` and `manage.py tenant list`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.text import slugify

from tenants.models import Role, Tenant
from tenants.provision import ensure_member, ensure_tenant


class Command(BaseCommand):
    """Make tenants and list them; the rest of a tenant is managed on its own pages."""

    help = "Make a tenant (prints its id), or list all tenants."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`create NAME [--slug SLUG] [--admin USERNAME]` or `list`."""
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser("create", help="make a tenant and print its id")
        create.add_argument("name")
        create.add_argument("--slug", help="default: made from the name")
        create.add_argument(
            "--admin",
            metavar="USERNAME",
            help="this user becomes its admin; a new one gets a password with changepassword",
        )
        commands.add_parser("list", help="print id, slug and name of every tenant")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the chosen command. Raises CommandError for a slug that is taken or none."""
        if options["command"] == "list":
            for tenant in Tenant.objects.order_by("slug"):
                self.stdout.write(f"{tenant.id}  {tenant.slug}  {tenant.name}")
            return
        slug = options["slug"] or slugify(options["name"])
        if Tenant.objects.filter(slug=slug).exists():
            raise CommandError(f"the slug {slug} is taken; choose another with --slug")
        try:
            tenant = ensure_tenant(slug, options["name"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        if options["admin"]:
            ensure_member(tenant, options["admin"], role=Role.ADMIN)
        self.stdout.write(str(tenant.id))
