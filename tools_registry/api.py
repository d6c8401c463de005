"""The registry's API: executors register their tools."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router
from pydantic import ValidationError

from config.http.problems import problem, problem_responses
from config.http.request_bodies import json_body
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.models import Scope, Tenant
from tenants.scope import tenant_scope
from tools_registry.changes import Publisher
from tools_registry.contract_diff import compare_contracts, diff_document
from tools_registry.models import Tool, ToolVersion
from tools_registry.schemas import ToolContract, explain, name_in
from tools_registry.versions import contract_of, register_contracts

BODY_MAX_BYTES = 5 * 1024 * 1024  # as for events
TOOLS_MAX = 500  # per request; the SDK sends 100
DIFFS_MAX, CHANGES_MAX, VALUE_LENGTH = 20, 50, 500  # limits of the diffs of collisions

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_VERSION = {
    "type": "object",
    "required": ["name", "version", "digest"],
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "integer"},
        "digest": {"type": "string"},
    },
}
_REFUSAL = {
    "type": "object",
    "required": ["index", "name", "code", "message"],
    "properties": {
        "index": {"type": "integer"},
        "name": {"type": ["string", "null"]},
        "code": {"type": "string"},
        "message": {"type": "string"},
        "diff": {
            "type": "object",
            "description": "For name_taken: the diff from the current version to this contract.",
            "required": ["callers", "consumers", "change_count", "changes"],
            "properties": {
                "callers": {"enum": ["compatible", "breaking", "unknown"]},
                "consumers": {"enum": ["compatible", "breaking", "unknown"]},
                "change_count": {"type": "integer"},
                "changes": {"type": "array", "items": {"type": "object"}},
            },
        },
    },
}
_ANSWER = {
    "type": "object",
    "required": ["registered", "known", "unknown", "kept", "refused"],
    "properties": {
        "registered": {"type": "array", "items": _VERSION},
        "known": {"type": "array", "items": _VERSION},
        "unknown": {"type": "array", "items": {"type": "string"}},
        "kept": {"type": "array", "items": _VERSION},
        "refused": {"type": "array", "items": _REFUSAL},
    },
}
_PROBLEMS = (
    *("malformed", "missing_key", "unknown_key", "missing_scope", "method_not_allowed"),
    *("name_taken", "too_large", "too_many", "unavailable"),
)
_REQUEST: dict[str, Any] = {
    "responses": {
        200: {"content": {"application/json": {"schema": _ANSWER}}},
        **problem_responses(_PROBLEMS)["responses"],
    },
    **json_body(
        {
            "type": "object",
            "required": ["tools"],
            "properties": {
                "tools": {
                    "type": "array",
                    "maxItems": TOOLS_MAX,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "digest": {"type": "string", "pattern": f"^{_DIGEST.pattern}$"},
                            "description": {"type": "string"},
                            "input_schema": {"type": "object"},
                            "output_schema": {"type": ["object", "null"]},
                            "trusted": {"type": "boolean"},
                            "ephemeral": {"type": "boolean"},
                            "on_collision": {"enum": ["throw", "replace", "keep"]},
                            "meta": {"type": "object"},
                        },
                    },
                }
            },
        }
    ),
}

router = Router()


@router.post(
    "/tools",
    auth=ApiKeyAuth(Scope.REGISTRY),
    operation_id="register_tools",
    summary="Register tools",
    tags=["tools"],
    openapi_extra=_REQUEST,
)
def register_tools(request: HttpRequest) -> HttpResponse:
    """Register tools: `{"tools": [...]}`, each a complete contract or only `{"digest"}`.

    Returns 200 with the result for each tool: `unknown` (digests whose contracts are needed),
    `known` and `registered` (`{name, version, digest}`), `kept` (the tool exists and its
    `on_collision` is `keep`: nothing changed) and `refused` (`{index, name, code, message}`).
    An invalid entry does not affect the others. A schema that cannot be used for validation is
    refused and recorded on the tool's page. Returns 400 for any other body, 409 if every entry
    collides with a registered contract, 413 above 5 MiB or 500 entries. Collisions have a `diff`.
    """
    identity = cast(ApiRequest, request).auth
    body = request.read(BODY_MAX_BYTES + 1)
    if len(body) > BODY_MAX_BYTES:
        return problem("too_large", f"The body exceeds {BODY_MAX_BYTES:,} bytes.")
    try:
        entries = json.loads(body)["tools"]
    except (ValueError, KeyError, TypeError, RecursionError):
        entries = None
    if not isinstance(entries, list):
        return problem("malformed", 'The body is not a JSON object {"tools": [...]}.')
    if len(entries) > TOOLS_MAX:
        return problem("too_many", f"At most {TOOLS_MAX} tools per request.")

    mentioned: list[str] = []
    contracts: list[ToolContract] = []
    refused: list[dict[str, Any]] = []
    unread: list[tuple[str, str]] = []
    index_of: dict[int, int] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, dict) and "digest" in entry and entry.keys() <= {"name", "digest"}:
            digest = entry["digest"]
            if isinstance(digest, str) and _DIGEST.fullmatch(digest):
                mentioned.append(digest)
            else:
                message = "digest: must be sha256: and 64 hexadecimal digits"
                refused.append(_refusal(index, entry, "malformed", message))
            continue
        try:
            contract = ToolContract.model_validate(entry)
        except ValidationError as error:
            reason = explain(error)
            refused.append(_refusal(index, entry, "malformed", reason))
            if name := name_in(entry):
                unread.append((name, reason))
            continue
        if entry.get("digest") not in (None, contract.digest):
            message = f"The digest of this contract is {contract.digest}."
            refused.append(_refusal(index, entry, "wrong_digest", message))
            continue
        index_of[id(contract)] = index
        contracts.append(contract)

    with tenant_scope(identity.tenant_id):
        tenant = Tenant.objects.get(pk=identity.tenant_id)
        publisher = Publisher(key_id=identity.key_id)
        result = register_contracts(
            tenant, contracts, publisher, mentioned=mentioned, unread=unread
        )
        collisions = list(_collisions(result.refused))
    for (contract, tool), diff in zip(result.refused, collisions, strict=True):
        message = (
            f"{tool.name} is already registered with another contract (version"
            f" {tool.current_number}), and on_collision is throw."
        )
        index = index_of[id(contract)]
        refused.append(_refusal(index, {"name": tool.name}, "name_taken", message) | diff)
    for contract, reason in result.unusable:
        index = index_of[id(contract)]
        refused.append(_refusal(index, {"name": contract.name}, "malformed", reason))
    known = {version.digest: version for version in result.known}
    answer: dict[str, Any] = {
        "registered": [_row(version) for version in result.registered],
        "known": [_row(version) for version in known.values()],
        "unknown": [digest for digest in dict.fromkeys(mentioned) if digest not in known],
        "kept": [
            {"name": tool.name, "version": tool.current_number, "digest": contract.digest}
            for contract, tool in result.kept
        ],
        "refused": sorted(refused, key=lambda refusal: refusal["index"]),
    }
    if collisions and len(collisions) == len(entries):
        return problem("name_taken", answer["refused"][0]["message"], **answer)
    return JsonResponse(answer)


def _collisions(refused: list[tuple[ToolContract, Tool]]) -> Iterator[dict[str, Any]]:
    """What each contract would have changed; of the first ones, for that takes its time."""
    for number, (contract, tool) in enumerate(refused):
        if number >= DIFFS_MAX:
            yield {}
            continue
        current = ToolVersion.objects.select_related("tool").get(
            tenant=tool.tenant_id,
            tool=tool,
            tool__tenant=tool.tenant_id,
            number=tool.current_number,
        )
        diff = compare_contracts(contract_of(current), contract)
        yield {"diff": diff_document(diff, limit=CHANGES_MAX, value_length=VALUE_LENGTH)}


def _row(version: ToolVersion) -> dict[str, Any]:
    return {"name": version.tool.name, "version": version.number, "digest": version.digest}


def _refusal(index: int, entry: Any, code: str, message: str) -> dict[str, Any]:
    name = entry.get("name") if isinstance(entry, dict) else None
    return {
        "index": index,
        "name": name if isinstance(name, str) else None,
        "code": code,
        "message": message,
    }
