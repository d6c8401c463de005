"""Tells a story of acts with a generated client, in an environment without Django.

Arguments: the folder the client was generated into, and the server's address; the key is in
TOOLTRAIL_API_KEY, and on standard input stand the steps (`tests.support.api_story`) as JSON.
Prints, by operation, the status, the class of what was parsed, and its members.
"""

import importlib
import inspect
import io
import json
import os
import pkgutil
import sys
from enum import Enum
from pathlib import Path
from typing import Any, get_args
from uuid import UUID


def filled(value: Any, answers: dict[str, Any]) -> Any:
    """The value with members of earlier answers in it."""
    if isinstance(value, list):
        return [filled(one, answers) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() != {"$got"}:
        return {name: filled(one, answers) for name, one in value.items()}
    operation, *names = value["$got"].split(".")
    found = answers[operation]["members"]
    for name in names:
        try:
            found = found[int(name)] if name.isdigit() else found[name]
        except (KeyError, IndexError):
            sys.exit(f"{value['$got']}: the answer was {answers[operation]}")
    return found


def typed(kind: Any, value: Any) -> Any:
    """A JSON value as the client's operation takes it."""
    kinds = get_args(kind) or (kind,)
    for one in kinds:
        if isinstance(value, dict) and hasattr(one, "from_dict"):
            return one.from_dict(value)
        if isinstance(one, type) and issubclass(one, UUID | Enum) and isinstance(value, str):
            return one(value)
    return value


def main() -> None:
    folder, url = Path(sys.argv[1]), sys.argv[2]
    sys.path.insert(0, str(folder.parent))
    package = importlib.import_module(folder.name)
    File = importlib.import_module(f"{folder.name}.types").File  # a class
    client = package.AuthenticatedClient(base_url=url, token=os.environ["TOOLTRAIL_API_KEY"])
    operations = importlib.import_module(f"{folder.name}.api")
    modules = {
        module.name.rpartition(".")[2]: module.name
        for module in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}.")
        if not module.ispkg
    }
    answers: dict[str, Any] = {}
    for step in json.load(sys.stdin):
        operation = importlib.import_module(modules[step["operation"]])
        parameters = inspect.signature(operation.sync_detailed).parameters
        given = filled({**step["path"], **step["query"]}, answers)
        given = {name if name in parameters else f"{name}_": one for name, one in given.items()}
        if step["media_type"] != "application/json":
            given["body"] = File(payload=io.BytesIO(step["body"].encode()))
        elif step["body"] is not None:
            given["body"] = filled(step["body"], answers)
        typed_arguments = {
            name: typed(parameters[name].annotation, one) for name, one in given.items()
        }
        answer = operation.sync_detailed(client=client, **typed_arguments)
        if answer.status_code >= 400:
            sys.exit(f"{step['operation']}: {answer.status_code} {answer.content.decode()}")
        answers[step["operation"]] = {
            "status": answer.status_code,
            "is": type(answer.parsed).__name__,
            "members": answer.parsed.to_dict() if hasattr(answer.parsed, "to_dict") else {},
        }
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
