"""`manage.py distribute`: put a database's tenants on the nodes of a Citus cluster."""

import json
import time
from argparse import ArgumentParser
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
from django.core.management.base import BaseCommand, CommandError

from config import env
from config.postgresql import cluster_nodes, database, distribution, roles
from config.postgresql.distribution import DistributionError


class Command(BaseCommand):
    """Plan, apply, show or balance the distribution."""

    help = (
        "Distribute the tenants' tables over a Citus cluster. Run `plan` first; `apply` may be"
        " interrupted and run again. Meanwhile the server answers 503, and senders retry."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`plan|apply|status|rebalance --admin-url URL [--name NAME] [--json]`."""
        commands = parser.add_subparsers(dest="command", required=True)
        plan = commands.add_parser("plan", help="check the nodes, and show what `apply` would do")
        apply = commands.add_parser("apply", help="join the nodes and distribute the tables")
        status = commands.add_parser("status", help="show where the tables and their shards are")
        rebalance = commands.add_parser(
            "rebalance", help="move shards until every node has its share; senders can continue"
        )
        for each in (plan, apply, status, rebalance):
            each.add_argument(
                "--admin-url",
                required=True,
                help="URL of a superuser of the coordinator, such as"
                " postgresql://postgres@host/postgres",
            )
            each.add_argument(
                "--name", default=roles.DATABASE, help="name of the database (%(default)s)"
            )
            each.add_argument("--json", action="store_true", help="print the result as JSON")
        for each in (plan, apply):
            each.add_argument(
                "--worker",
                action="append",
                default=[],
                metavar="URL",
                help="URL of a superuser of a node for tenants; repeat for several nodes",
            )
        apply.add_argument(
            "--shards",
            type=int,
            default=distribution.SHARDS,
            help="shards of each table; it cannot be changed later (%(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the subcommand. Raises CommandError, with a line that says what is missing."""
        url, name = options["admin_url"], options["name"]
        try:
            if options["command"] == "apply":
                self._apply(url, name, options)
                return
            address = database.with_database(url, name)
            with psycopg.connect(address, autocommit=True) as connection:
                if options["command"] == "plan":
                    self._plan(connection, [url, *options["worker"]], is_json=options["json"])
                elif options["command"] == "status":
                    self._status(connection, is_json=options["json"])
                else:
                    cluster_nodes.rebalance(connection, self._report)
                    self._status(connection, is_json=options["json"])
        except (DistributionError, psycopg.Error) as error:
            raise CommandError(str(error).splitlines()[0]) from error

    def _plan(self, connection: distribution.Connection, nodes: list[str], is_json: bool) -> None:
        todo = distribution.plan(connection)
        refusals = [reason for node in nodes for reason in cluster_nodes.why_unfit(node)]
        rows = distribution.row_counts(connection, [*todo.references, *todo.tables])
        if is_json:
            result = {"references": todo.references, "tables": todo.tables, "rows": rows}
            self.stdout.write(json.dumps({**result, "refusals": refusals}))
        else:
            for table in todo.references:
                self.stdout.write(f"{table:<24}{rows[table]:>14,} rows  copied to every node")
            for table in todo.tables:
                self.stdout.write(f"{table:<24}{rows[table]:>14,} rows  distributed by tenant_id")
            if not rows:
                self.stdout.write("All tables are distributed already.")
        if refusals:
            raise CommandError("; ".join(refusals))

    def _apply(self, url: str, name: str, options: dict[str, Any]) -> None:
        nodes = [url, *options["worker"]]
        if refusals := [reason for node in nodes for reason in cluster_nodes.why_unfit(node)]:
            raise CommandError("; ".join(refusals))
        began = time.monotonic()
        cluster_nodes.join_nodes(url, options["worker"], name, _passwords(url))
        with psycopg.connect(database.with_database(url, name), autocommit=True) as connection:
            todo = distribution.plan(connection)
            if todo.tables and not cluster_nodes.workers(connection):
                raise CommandError("the cluster has no node for tenants: add one with --worker")
            distribution.apply(connection, todo, shards=options["shards"], report=self._report)
        self._report(f"distributed in {time.monotonic() - began:.1f} s")
        if options["json"]:
            self.stdout.write(json.dumps({"references": todo.references, "tables": todo.tables}))

    def _status(self, connection: distribution.Connection, is_json: bool) -> None:
        nodes = cluster_nodes.workers(connection)
        left = distribution.plan(connection).tables
        if is_json:
            self.stdout.write(json.dumps({"nodes": nodes, "not_distributed": left}))
            return
        for node in nodes:
            self.stdout.write(
                f"{node['host']}:{node['port']}: {node['shards']} shards,"
                f" {node['bytes'] / 1e6:,.1f} MB"
            )
        if not nodes:
            self.stdout.write("This database is not distributed.")
        elif left:
            self.stdout.write(f"Not distributed: {', '.join(left)}. Run `distribute apply` again.")

    def _report(self, line: str) -> None:
        self.stderr.write(line, str)


def _passwords(admin_url: str) -> dict[str, str]:
    """The passwords that we know, by role."""
    urls = [admin_url, *(env.text(variable, "") for variable in roles.VARIABLES)]
    logins = [urlsplit(url) for url in urls]
    return {
        each.username: unquote(each.password) for each in logins if each.username and each.password
    }
