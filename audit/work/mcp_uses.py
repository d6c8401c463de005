"""Uses of the tools of `/mcp` on record: one action for each caller, tool and minute.

A caller is a key, or a person with an access token.

A use is counted in a transaction of its own before the tool runs. The worker records the counts of
minutes that are over. So reading makes the ledger grow by at most one entry a minute for each
caller and tool, and a process that dies loses no count.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from audit.sql.run import rows
from tenants.actions import Actor, record_actions, storable_text
from tenants.identity.resource import PERSON, PersonIdentity
from tenants.keys import ApiKeyIdentity, name_of_key
from tenants.models import User
from tenants.scope import tenant_scope

VERB = "mcp.use"
CLIENTS_MAX = 5
"""Names of clients that one entry lists."""
_CLIENT_LENGTH = 100
_SLACK = timedelta(seconds=10)
"""Clocks of hosts differ: so long after its end a minute is over for all of them."""


def count_use(
    who: ApiKeyIdentity | PersonIdentity,
    tool: str,
    arguments: Mapping[str, Any],
    client: str,
    now: datetime,
) -> None:
    """Count a use of a tool. `client` is the name that the client gave; '' if none.

    Opens the tenant's scope.
    """
    name = storable_text(client[:_CLIENT_LENGTH]) or "unnamed"
    with tenant_scope(who.tenant_id):
        rows(
            "count_mcp_use",
            {
                "key_id": who.caller,
                "tool": tool,
                "minute": now.astimezone(UTC).replace(second=0, microsecond=0),
                "digest": digest_of(arguments),
                "clients": [name],
                "clients_max": CLIENTS_MAX,
            },
        )


def digest_of(arguments: Mapping[str, Any]) -> str:
    """The SHA-256 of a use's arguments as JSON with sorted members, without white space.

    The digest of a minute with several uses is chained: SHA-256 of the hexadecimal digest so far,
    followed by that of the next use.
    """
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def record_uses(tenant_id: UUID, now: datetime) -> int:
    """Record the uses of minutes that are over as actions. Returns how many actions.

    Opens the tenant's scope.
    """
    before = (now - timedelta(minutes=1) - _SLACK).astimezone(UTC)
    with tenant_scope(tenant_id):
        taken = rows("take_mcp_uses", {"before": before})
        for caller, tool, minute, use_count, digest, clients in sorted(taken):
            details = {
                "minute": minute.astimezone(UTC).isoformat(),
                "count": use_count,
                "digest": digest,
                "clients": clients,
            }
            actor = actor_of_caller(tenant_id, caller)
            record_actions(tenant_id, actor, [(VERB, tool, details)])
    return len(taken)


def actor_of_caller(tenant_id: UUID, caller: str) -> Actor:
    """Who a caller is in the audit log. Needs the tenant's scope."""
    if not caller.startswith(PERSON):
        return name_of_key(tenant_id, caller)
    return User.objects.filter(pk=int(caller.removeprefix(PERSON))).first() or caller
