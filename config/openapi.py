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
from config.http.problems import KINDS, told
from config.version import VERSION

PREFIX = "/api/v1/"
_TAGS = {
    "events": "Send what executors recorded. The contract of an event is docs/events.md.",
    "figures": "Sums of a range of time, as on the pages of the same name.",
    "calls": "Single executions of tools, and their payloads.",
    "traces": "The calls that share a trace id.",
    "losses": "What may be missing: producers and their numbering, refused lines.",
    "reports": "Reports that were made and kept.",
    "actions": "What people and programs did: who, what, when, and which entry says so.",
    "ledger": "Proofs that nothing was altered: docs/ledger.md says how to check them.",
    "tools": "The registry of tools and their versions.",
}
ABOUT = """\
Everything is one tenant's: the one whose API key is sent as `Authorization: Bearer tt_…`. Reading
takes the scope `read`; payloads, and texts that quote them, take `payloads` besides.

Lists are paged: `next` of an answer is the `cursor` of the next request, null at the end; the
header `Link` holds its address, relative to the server's. Rows that come meanwhile neither shift
nor repeat others.

Times are RFC 3339 in UTC. Whatever is refused is an `application/problem+json` (RFC 9457) whose
`code` stays the same; a parameter nobody knows is refused, too. Texts of executors are handed on
as they came: whoever shows them escapes them."""
_PROBLEM = {
    "title": "Problem",
    "description": "Why a request was refused (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "message"],
    "properties": {
        "type": {"type": "string", "description": "Where the kind of problem is explained."},
        "title": {"type": "string", "description": "The kind of problem in a few words."},
        "status": {"type": "integer", "description": "The answer's status."},
        "detail": {"type": "string", "description": "What is wrong with this request."},
        "code": {"type": "string", "enum": list(KINDS), "description": "The kind, for programs."},
        "message": {"type": "string", "description": "`detail`, by its older name."},
        "parameter": {"type": "string", "description": "Which parameter is wrong."},
        "position": {"type": "integer", "description": "Where in `q` it is wrong."},
        "length": {"type": "integer", "description": "How many characters of `q` that concerns."},
    },
}


@cache
def description() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    made: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix=PREFIX)))
    made["info"] |= {"version": VERSION, "description": ABOUT, "license": {"name": "Apache-2.0"}}
    made["info"]["license"]["identifier"] = "Apache-2.0"
    made["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items()]
    made["servers"] = [{"url": "/"}]
    made["components"]["schemas"]["Problem"] = _PROBLEM
    everywhere = json.loads(json.dumps(told(("method_not_allowed", "unavailable"))["responses"]))
    for methods in made["paths"].values():
        for operation in methods.values():
            operation["responses"] = everywhere | operation["responses"]
            for parameter in operation["parameters"]:
                # Ninja puts JSON Schema's list here, but OpenAPI requires a mapping.
                parameter.pop("examples", None)
    made["paths"][otlp.PATH] = {"post": otlp.OPERATION}
    for scheme in made["components"]["securitySchemes"].values():
        scheme |= {"bearerFormat": "tt_…", "description": "An API key of the tenant."}
    return made


@csrf_exempt
@require_safe
@cache_control(max_age=300)
def openapi_json(request: HttpRequest) -> HttpResponse:
    """Return the document as JSON."""
    return HttpResponse(_document(), content_type="application/json")


@cache
def _document() -> bytes:
    return json.dumps(description()).encode()
