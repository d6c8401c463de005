"""The OpenAPI document of the API. `config.api_docs` renders it for people."""

import json
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from audit.intake.otlp import description as otlp
from config.api import api
from config.http.problems import KINDS, problem_responses
from config.http.request_ids import HEADER
from config.version import VERSION

PREFIX = "/api/v1/"
_TAGS = {
    "events": "Send the events of executors. docs/events.md describes their format.",
    "figures": "Totals for a time range, as on the pages of the same name.",
    "calls": "Single executions of tools, with their payloads.",
    "traces": "The calls that share a trace id.",
    "losses": "Possible losses: producers with sequence gaps, and rejected events.",
    "reports": "Stored reports.",
    "actions": "The audit log: actions of people and programs, each with its ledger entry.",
    "prices": "What a call or a unit of a tool costs, and from which day on.",
    "sharing": "Links to calls, traces, pages of figures and reports, which expire.",
    "notes": "What people say about calls, traces, kinds of violations and versions of tools.",
    "alerts": "Rules that watch calls and events, the alerts that they raised, and where these go.",
    "streams": "The record on its way to SIEMs, each record with its proof. docs/siem.md.",
    "ledger": "Proofs that nothing was altered. docs/ledger.md explains how to check them.",
    "tools": "The registry of tools and their versions.",
    "retention": "Legal holds, incidents, the retention floor, and erasures with their preview.",
    "samples": "Auditors' samples of calls: drawn, concluded about, and signed.",
    "administration": "Members, API keys and settings, as an admin has them on the pages.",
}
ABOUT = """\
An API key belongs to one tenant, and every request sees only that tenant's data. Send the key as
`Authorization: Bearer tt_…` or `x-api-key: tt_…`. Reading needs the scope `read`; payloads, and
texts that quote them, also need `payloads`.

All lists have one form: rows are `items`. Pass `next` of a response as `cursor` of the next
request; it is null on the last page. The `Link` header has the URL of the next page. New rows
neither shift nor repeat the rows of later pages. Rows that are ordered by size are counted again
for each page, in the range of the first page.

Until the next version, answers also have the rows under their older name (`calls`, `traces` …), and
say so with the headers `Deprecation` and `Sunset`. Requests with `Prefer: items` get `items` only.

Times are RFC 3339 in UTC. An error is an `application/problem+json` (RFC 9457) with a stable
`code`. Unknown parameters are rejected. Texts from executors are returned unchanged: escape them
before you show them."""
_REQUEST_ID = {
    "description": "Id of the request: as sent, or made by the server. It is in the server's log.",
    "schema": {"type": "string"},
}
_PROBLEM = {
    "title": "Problem",
    "description": "Why a request was rejected (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "message"],
    "properties": {
        "type": {"type": "string", "description": "URL that explains this kind of problem."},
        "title": {"type": "string", "description": "Short name of the kind of problem."},
        "status": {"type": "integer", "description": "HTTP status."},
        "detail": {"type": "string", "description": "What is wrong with this request."},
        "code": {"type": "string", "enum": list(KINDS), "description": "Stable code for programs."},
        "message": {"type": "string", "description": "Same as `detail`; older name."},
        "parameter": {"type": "string", "description": "The invalid parameter."},
        "position": {"type": "integer", "description": "Start of the error in `q`."},
        "length": {"type": "integer", "description": "Length of the error in `q`, in characters."},
    },
}


@cache
def description() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    document: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix=PREFIX)))
    document["info"] |= {
        "version": VERSION,
        "description": ABOUT,
        "license": {"name": "Apache-2.0"},
    }
    document["info"]["license"]["identifier"] = "Apache-2.0"
    document["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items()]
    document["servers"] = [{"url": "/"}]
    document["components"]["schemas"]["Problem"] = _PROBLEM
    everywhere = json.loads(
        json.dumps(problem_responses(("method_not_allowed", "unavailable"))["responses"])
    )
    for methods in document["paths"].values():
        for operation in methods.values():
            operation["responses"] = everywhere | operation["responses"]
            for parameter in operation["parameters"]:
                # Ninja puts JSON Schema's list here, but OpenAPI requires a mapping.
                parameter.pop("examples", None)
    document["paths"] |= json.loads(json.dumps(otlp.PATHS))
    document["components"]["headers"] = {"RequestId": _REQUEST_ID}
    for methods in document["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                header = {"$ref": "#/components/headers/RequestId"}
                response["headers"] = {**response.get("headers", {}), HEADER: header}
    for scheme in document["components"]["securitySchemes"].values():
        scheme |= {"bearerFormat": "tt_…", "description": "API key of a tenant."}
    _open_objects(document)
    return document


def _open_objects(part: Any) -> None:
    """Say of objects without described members that they may have any.

    JSON Schema means that already, but generators of clients read "none".
    """
    if isinstance(part, list):
        for each in part:
            _open_objects(each)
    elif isinstance(part, dict):
        kind = part.get("type")
        is_object = kind == "object" or (isinstance(kind, list) and "object" in kind)
        if is_object and not part.keys() & {"properties", "additionalProperties"}:
            part["additionalProperties"] = True
        for each in part.values():
            _open_objects(each)


@csrf_exempt
@require_safe
@cache_control(max_age=300)
def openapi_json(request: HttpRequest) -> HttpResponse:
    """Return the document as JSON."""
    return HttpResponse(_document(), content_type="application/json")


@cache
def _document() -> bytes:
    return json.dumps(description()).encode()
