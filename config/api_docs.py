"""The API's documentation page, made only from the OpenAPI document."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from config.http.problems import KINDS
from config.openapi import ABOUT, description


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a member of a schema."""

    name: str
    type: SafeString
    about: SafeString
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as the page shows it."""

    id: str
    method: str
    path: str
    title: str
    about: list[SafeString]
    parameters: list[Field]
    status: str
    answer: SafeString
    problems: list[tuple[str, list[str]]]
    """Problem codes by HTTP status."""


class Group(NamedTuple):
    """The operations of one tag."""

    tag: str
    about: SafeString
    operations: list[Operation]


class Schema(NamedTuple):
    """A schema that operations return."""

    name: str
    about: SafeString
    members: list[Field]


@csrf_exempt
@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """Show the operations by tag, the schemas they return, and every kind of problem."""
    document = description()
    groups = [
        Group(tag["name"], prose(tag["description"]), list(_operations(document, tag["name"])))
        for tag in document["tags"]
    ]
    context = {
        "about": [prose(part) for part in ABOUT.split("\n\n")],
        "groups": [group for group in groups if group.operations],
        "schemas": [
            Schema(name, prose(schema.get("description", "")), list(_members(schema)))
            for name, schema in sorted(document["components"]["schemas"].items())
        ],
        "problems": KINDS,
        "origin": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, "api_docs.html", context)


def prose(text: str) -> SafeString:
    """Return a docstring's paragraph as HTML, with text between backticks as code."""
    parts = " ".join(text.split()).split("`")
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<code>{}</code>", part) if n % 2 else part,)
            for n, part in enumerate(parts)
        ),
    )


def _operations(document: dict[str, Any], tag: str) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            if tag not in one.get("tags", ()):
                continue
            answers = {status: _content(text) for status, text in one["responses"].items()}
            success = min(answers)
            yield Operation(
                id=one["operationId"],
                method=method.upper(),
                path=path,
                title=one["summary"],
                about=[prose(part) for part in one.get("description", "").split("\n\n")],
                parameters=[
                    _field(each["name"], each["schema"], each) for each in one["parameters"]
                ],
                status=success,
                answer=_type(answers[success].get("schema", {})),
                problems=[
                    (status, list(content["examples"]))
                    for status, content in answers.items()
                    if "examples" in content
                ],
            )


def _content(response: dict[str, Any]) -> dict[str, Any]:
    return next(iter(response.get("content", {}).values()), {})


def _members(schema: dict[str, Any]) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, member in schema.get("properties", {}).items():
        yield _field(name, member, {"required": name in required})


def _field(name: str, schema: dict[str, Any], around: dict[str, Any]) -> Field:
    about = around.get("description") or schema.get("description", "")
    return Field(name, _type(schema), prose(about), bool(around.get("required")))


def _type(schema: dict[str, Any]) -> SafeString:
    """Describe a schema in a few words. A reference becomes a link to its schema on the page."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return format_html('<a href="#{}">{}</a>', name, name)
    if "anyOf" in schema:
        return format_html_join(" or ", "{}", ((_type(one),) for one in schema["anyOf"]))
    if "enum" in schema:
        return format_html_join(", ", "<code>{}</code>", ((one,) for one in schema["enum"]))
    if "const" in schema:
        return format_html("<code>{}</code>", schema["const"])
    kind = schema.get("type", "any")
    if kind == "array":
        return format_html("list of {}", _type(schema.get("items", {})))
    words = {"date-time": "instant", "uuid": "UUID", "date": "day"}
    text = words.get(
        schema.get("format", ""), " or ".join(kind) if isinstance(kind, list) else kind
    )
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        text += f", {low:,} to {high:,}"
    if schema.get("default") not in (None, ""):
        return format_html("{}, default <code>{}</code>", text, schema["default"])
    return format_html("{}", text)
