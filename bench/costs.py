"""How long pages with costs take: `uv run bench/costs.py [--calls 1000000] [--answers 215600]`.

Fills the index of a database of its own with random calls of 30 days, and answers of models beside
them, by four models of which one has no price. Prints the times of each page, in ms of this
process, of `--rounds` requests by a signed-in member. On a busy machine trust `best`.
"""

import argparse
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.apart import SETTINGS, database_seconds, fill
from bench.own_database import own_database
from bench.painting import p95

DAYS = 30
PAGES = {
    "agents, 24 hours": "/agents/?range=24h",
    "agents, 30 days": "/agents/?range=30d",
    "an agent, 30 days": "/agents/?range=30d&agent=agent-3",
    "costs, 24 hours": "/costs/?range=24h",
    "costs, 30 days": "/costs/?range=30d",
    "API: costs, 30 days": "/api/v1/costs?range=30d",
    "overview, 30 days": "/?range=30d",
}
ANSWERS = """
INSERT INTO llm_usage (
    tenant_id, started_on, span_uuid, started_at, trace_id, provider, model, agent, agent_version,
    run_id, input_tokens, cached_tokens, written_tokens, output_tokens, is_inner
)
SELECT %(tenant)s, (at AT TIME ZONE 'UTC')::date, gen_random_uuid(), at, 'trace-' || n / 4,
       'openai', (ARRAY['gpt-4o', 'gpt-4o-mini', 'gpt-5.4', 'our-own'])[1 + n %% 4],
       'agent-' || n %% 10, (n %% 3)::text, 'run-' || n / 40, took, took / 2, 0,
       (random() * 2000)::int, random() < 0.05
FROM (
    SELECT n, %(start)s::timestamptz + %(step)s * n AS at, (random() * 300000)::int AS took
    FROM generate_series(0, %(answers)s - 1) AS n
) AS drawn
"""


def main() -> int:
    """Build an installation, measure, delete it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--answers", type=int, default=215_600)
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        own_database(Path(folder), settings=SETTINGS),
    ):
        print(f"{asked.calls:,} calls and {asked.answers:,} answers over {DAYS} days")
        measure(build(asked.calls, asked.answers), asked.rounds)
    return 0


def build(calls: int, answers: int) -> UUID:
    """Fill the index of a new tenant with a price list; return its id."""
    from django.core.management import call_command
    from django.db import connection, connections

    from audit.prices.lists import save_list
    from audit.queries.price_lists import ToolPrice
    from tenants.models import Tenant, User
    from tenants.scope import tenant_scope

    call_command("collectstatic", interactive=False, verbosity=0)
    now = datetime.now(UTC)
    start = now - timedelta(days=DAYS)
    tenant = Tenant.objects.create(slug="bench", name="Bench")
    fill(tenant.id, start, calls, DAYS)
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        step = timedelta(days=DAYS) / answers
        values: dict[str, Any] = {"tenant": tenant.id, "start": start, "step": step}
        values["answers"] = answers
        cursor.execute(ANSWERS, values)
        prices = [ToolPrice(f"tool-{n}", Decimal("0.004")) for n in range(10)]
        admin = User.objects.create(username="bench-admin")
        save_list(tenant, admin, start.date(), "USD", prices, now)
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE llm_usage")
    return tenant.id


def measure(tenant_id: UUID, rounds: int) -> None:
    """Print a line for each page."""
    from django.db import connection

    from bench.pages import member, times_ms

    client = member(tenant_id)
    client.get(PAGES["agents, 24 hours"])  # imports the package of prices
    heads = ("best", "p50", "p95", "processor")
    print(f"{f'ms of {rounds} requests':24}" + "".join(f"{head:>12}" for head in heads))
    for name, address in PAGES.items():
        connection.ensure_connection()
        began = time.process_time() + database_seconds()
        times = times_ms(client, address, rounds)
        used = (time.process_time() + database_seconds() - began) / (rounds + 1) * 1000
        shown = (min(times), statistics.median(times), p95(times), used)
        print(f"{name:24}" + "".join(f"{ms:12.0f}" for ms in shown), flush=True)


if __name__ == "__main__":
    sys.exit(main())
