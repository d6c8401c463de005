"""A call of MCP that both sides of a connection could record is recorded once, by the client.

The client adds a claim to the request's `_meta`: that it has recorded the call. The server's side
believes it if the claim was made with its own API key, for this tool and these arguments, a moment
ago, and is new. The SDK for JavaScript makes and reads the same claims (`mcpClaims.ts`).
"""

import hmac
import re
import time
from collections.abc import Mapping
from hashlib import sha256
from threading import Lock
from typing import Any, Final, NamedTuple

from tooltrail.events import ID_MAX_LENGTH
from tooltrail.recording import Call
from tooltrail.tools.canonical import canonical_stringify
from tooltrail.trail import Trail

MEMBER: Final = "tooltrail/call"
_FRESH_MS: Final = 5 * 60_000  # clocks differ
_REMEMBERED_MAX: Final = 10_000
_UUID7: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_PROOF: Final = re.compile(r"[0-9a-f]{64}")
_believed: dict[str, None] = {}
_lock = Lock()


class Claim(NamedTuple):
    """The call that the client has recorded."""

    invocation_id: str
    trace_id: str


def make_claim(trail: Trail, call: Call, params: Mapping[str, Any]) -> dict[str, str]:
    """Make the claim that `call` is the record of a `tools/call` with these parameters."""
    proof = _proof(trail, call.id, call.trace_id, params)
    return {"invocation_id": call.id, "trace_id": call.trace_id, "proof": proof}


def believe(trail: Trail, params: Mapping[str, Any]) -> Claim | None:
    """Read the claim in the parameters of a `tools/call`. None without one that can be believed.

    Believes a claim once: the same request again is another call, which nobody has recorded.
    """
    meta = params.get("_meta")
    stated = meta.get(MEMBER) if isinstance(meta, Mapping) else None
    if not isinstance(stated, Mapping) or not trail.settings.api_key:
        return None
    call_id, trace_id, proof = (stated.get(n) for n in ("invocation_id", "trace_id", "proof"))
    if not isinstance(call_id, str) or not _UUID7.fullmatch(call_id):
        return None
    if not isinstance(trace_id, str) or not 0 < len(trace_id) <= ID_MAX_LENGTH:
        return None
    if not isinstance(proof, str) or not _PROOF.fullmatch(proof):
        return None
    made_at_ms = int(call_id[:8] + call_id[9:13], 16)
    if abs(time.time_ns() // 1_000_000 - made_at_ms) >= _FRESH_MS:
        return None
    if not hmac.compare_digest(proof, _proof(trail, call_id, trace_id, params)):
        return None
    with _lock:
        if proof in _believed:
            return None
        if len(_believed) >= _REMEMBERED_MAX:
            del _believed[next(iter(_believed))]
        _believed[proof] = None
    return Claim(call_id, trace_id)


def _proof(trail: Trail, call_id: str, trace_id: str, params: Mapping[str, Any]) -> str:
    args = params.get("arguments")
    call = {
        "args": {} if args is None else args,
        "id": call_id,
        "tool": params.get("name"),
        "trace": trace_id,
    }
    if isinstance(state := params.get("requestState"), str):  # a later round of the same call
        call["state"] = state
    text = canonical_stringify(call).encode()
    return hmac.new((trail.settings.api_key or "").encode(), text, sha256).hexdigest()
