"""Each schema of the OpenAPI description has a name of its own."""

from collections import defaultdict
from enum import Enum
from typing import Any, get_args

from pydantic import BaseModel

from config.api import api


def _classes() -> set[type]:
    """The models and enumerations that operations take and answer with, at any depth."""
    waiting: list[Any] = [
        model
        for _, router in api._routers
        for view in router.path_operations.values()
        for operation in view.operations
        for model in (*operation.response_models.values(), *operation.models)
    ]
    seen: set[type] = set()
    while waiting:
        one = waiting.pop()
        waiting += get_args(one)
        if isinstance(one, type) and issubclass(one, BaseModel | Enum) and one not in seen:
            seen.add(one)
            if issubclass(one, BaseModel):
                waiting += [field.annotation for field in one.model_fields.values()]
    return seen


def test_no_two_classes_share_the_name_of_a_schema() -> None:
    """Of two classes with one name, the description would keep only one, without an error."""
    classes: dict[str, set[str]] = defaultdict(set)
    for each in _classes():
        if each.__name__ not in ("NinjaResponseSchema", "QueryParams", "PathParams"):
            classes[each.__name__].add(f"{each.__module__}.{each.__qualname__}")
    assert len(classes) > 100
    assert {name: where for name, where in classes.items() if len(where) > 1} == {}
