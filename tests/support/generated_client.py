"""Calls each operation with a generated client, in an environment without Django.

Arguments: the folder the client was generated into, and the server's address; the key is in
TOOLTRAIL_API_KEY, and on standard input stands `{operation: its arguments}`. Prints, by operation,
the status, the class of what was parsed, its members, and those that nobody declared.
"""

import importlib
import inspect
import json
import os
import pkgutil
import sys
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID


def undeclared(parsed: Any, path: str = "") -> list[str]:
    """The members of a parsed answer that its class does not know, at any depth."""
    if isinstance(parsed, list):
        return [name for one in parsed for name in undeclared(one, f"{path}[]")]
    if not hasattr(parsed, "additional_properties"):
        return []
    names = [attribute.name for attribute in parsed.__attrs_attrs__]
    members = {name.strip("_"): getattr(parsed, name) for name in names}
    more = members.pop("additional_properties")
    if not members:  # an object with any members
        return []
    paths = [f"{path}.{name}" for name in more]
    return paths + [
        one for name, member in members.items() for one in undeclared(member, f"{path}.{name}")
    ]


def main() -> None:
    folder, url = Path(sys.argv[1]), sys.argv[2]
    arguments = json.load(sys.stdin)
    sys.path.insert(0, str(folder.parent))
    package = importlib.import_module(folder.name)
    client = package.AuthenticatedClient(base_url=url, token=os.environ["TOOLTRAIL_API_KEY"])
    answers: dict[str, Any] = {}
    operations = importlib.import_module(f"{folder.name}.api")
    for module in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}."):
        if module.ispkg:
            continue
        operation = importlib.import_module(module.name)
        name = module.name.rpartition(".")[2]
        if '"method": "get"' not in inspect.getsource(operation._get_kwargs):
            continue  # it writes
        given = arguments.get(name, {})
        for each, parameter in inspect.signature(operation.sync_detailed).parameters.items():
            kind = parameter.annotation
            if each in given and isinstance(kind, type) and issubclass(kind, UUID | Enum):
                given[each] = kind(given[each])
        answer = operation.sync_detailed(client=client, **given)
        answers[name] = {
            "status": answer.status_code,
            "is": type(answer.parsed).__name__,
            # An answer that is not JSON has only bytes.
            "members": answer.parsed.to_dict() if hasattr(answer.parsed, "to_dict") else {},
            "undeclared": undeclared(answer.parsed),
        }
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
