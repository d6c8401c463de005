"""The story of acts as a TypeScript program, so that the compiler checks every step."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.api_story import Got, Step


def program(steps: Iterable[Step], document: Mapping[str, Any]) -> str:
    """The program. It prints the status of each operation as JSON."""
    places = {
        operation["operationId"]: (method.upper(), path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    lines = ['import { asTheyAre, client, done, statuses } from "./acts.js";', ""]
    for step in steps:
        method, path = places[step.operation]
        params = {
            name: members
            for name, members in (("path", step.path), ("query", step.query))
            if members
        }
        options = [f"params: {_literal(params)}"] if params else []
        if step.media_type != "application/json":
            options.append(f"...asTheyAre({json.dumps(step.media_type)})")
        if step.body is not None:
            options.append(f"body: {_literal(step.body)}")
        request = f"client.{method}({json.dumps(path)}, {{ {', '.join(options)} }})"
        lines.append(f'const {step.operation} = await done("{step.operation}", {request});')
    lines.append("console.log(JSON.stringify(statuses));")
    # A step whose answer nobody needs is used here, as the compiler reports unused names.
    lines.append(f"export {{ {', '.join(step.operation for step in steps)} }};")
    return "\n".join(lines) + "\n"


def _literal(value: Any) -> str:
    match value:
        case Got(place):
            operation, *names = place.split(".")
            return operation + "".join(
                f"[{name}]!" if name.isdigit() else f".{name}" for name in names
            )
        case Mapping():
            members = (f"{json.dumps(name)}: {_literal(one)}" for name, one in value.items())
            return f"{{ {', '.join(members)} }}"
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case _:
            return json.dumps(value)
