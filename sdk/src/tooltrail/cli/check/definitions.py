"""Definitions of tools, as they are checked, and how files of them are read.

Owns where a definition is from. What its members mean is decided by the server, which knows the
forms of providers and the registry's own.
"""

import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

REGISTRY_FORMAT: Final = "tooltrail-registry"
FILE_MAX_BYTES: Final = 10_000_000
YAML_MAX_BYTES: Final = 1_000_000
"""Reading YAML is slow."""
_VALUES_MAX: Final = 1_000_000
"""In a file of YAML, whose aliases may repeat a value without end."""


class CheckError(Exception):
    """Nothing can be checked. The message says why, on one line; it may quote foreign texts."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool's definition: a JSON object in a provider's form or the registry's."""

    place: str
    """Where it is, for people: `tools.json: tools[2]`."""
    content: Any
    is_own: bool = False
    """Whether it has the registry's own form, with versions."""
    file: Path | None = None
    """The file that it is in."""
    line: int = 1
    """Its line in the file, from 1."""


def own_form(contract: dict[str, Any]) -> dict[str, Any]:
    """A whole contract in the registry's form, as its only version."""
    version = {name: value for name, value in contract.items() if name != "name"}
    return {
        "name": contract["name"],
        "current_version": 1,
        "versions": [{"version": 1, **version}],
    }


def read_file(path: Path) -> list[Definition]:
    """The definitions in a file of JSON or YAML. Raises CheckError."""
    text = _read_text(path)
    document = _document_in(path, text)
    is_own = isinstance(document, dict) and document.get("format") == REGISTRY_FORMAT
    definitions = [
        Definition(f"{path}: {place}", content, is_own, path, _line_of(content, text))
        for place, content in listed(document)
    ]
    if not definitions:
        raise CheckError(f"{path}: has no tools")
    return definitions


def read_document(path: Path) -> Any:
    """What a file of JSON or YAML holds. Raises CheckError."""
    return _document_in(path, _read_text(path))


def is_yaml(path: Path) -> bool:
    """Whether a file is read as YAML."""
    return path.suffix in (".yaml", ".yml")


def read_json(source: str, text: str | bytes) -> Any:
    """A JSON document of somebody else. Raises CheckError."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise CheckError(f"{source}: nested too deeply") from None
    except ValueError as error:
        raise CheckError(f"{source}: invalid JSON: {error}") from None


def listed(document: Any) -> Iterator[tuple[str, Any]]:
    """Place and content of each definition; one alone counts as a list."""
    definitions, place = document, "$"
    if isinstance(document, dict):
        result = document.get("result")
        if isinstance(result, dict) and "tools" in result:  # an answer of JSON-RPC
            definitions, place = result["tools"], "result.tools"
        elif "tools" in document:
            definitions, place = document["tools"], "tools"
        else:
            yield "$", document
            return
    for index, each in enumerate(definitions if isinstance(definitions, list) else ()):
        yield f"{place}[{index}]", each


def relative(path: Path) -> Path:
    """The path from the current folder, if the file is below it."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  # links stay as they are
    try:
        return absolute.relative_to(Path.cwd())
    except ValueError:
        return absolute


def _document_in(path: Path, text: str) -> Any:
    return _read_yaml(path, text) if is_yaml(path) else read_json(str(path), text)


def _read_text(path: Path) -> str:
    data = _read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CheckError(f"{path}: the bytes are not UTF-8") from None


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise CheckError(f"{path}: {error.strerror}") from None
    if len(data) > FILE_MAX_BYTES:
        raise CheckError(f"{path}: has more than {FILE_MAX_BYTES:,} bytes")
    return data


def _read_yaml(path: Path, text: str) -> Any:
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise CheckError(f"{path}: YAML needs pip install 'tooltrail[yaml]'") from None
    if len(text) > YAML_MAX_BYTES:
        raise CheckError(f"{path}: has more than {YAML_MAX_BYTES:,} characters of YAML")
    try:
        # YAML 1.2: `on` and `yes` are texts, as they are in JSON.
        document = YAML(typ="safe", pure=True).load(io.StringIO(text))
        _check_plain(path, document)
    except RecursionError:
        raise CheckError(f"{path}: nested too deeply") from None
    except (YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise CheckError(f"{path}: invalid YAML: {reason[:300]}") from None
    return document


def _check_plain(path: Path, document: Any) -> None:
    """Raise CheckError for what JSON does not have, and for too many values."""
    waiting: list[Any] = [document]
    count = 0
    while waiting:
        count += 1
        if count > _VALUES_MAX:
            raise CheckError(f"{path}: has more than {_VALUES_MAX:,} values")
        match waiting.pop():
            case dict() as members:
                if wrong := next((name for name in members if not isinstance(name, str)), None):
                    raise CheckError(f"{path}: the key {wrong!r} is not a text: put it in quotes")
                waiting += members.values()
            case list() as items:
                waiting += items
            case None | bool() | int() | float() | str():
                pass
            case other:
                kind = type(other).__name__
                raise CheckError(f"{path}: has a {kind}, which JSON does not: put it in quotes")


def _line_of(content: Any, text: str) -> int:
    """The first line that gives the definition's name; 1 if there is none."""
    name = name_in(content)
    if not name:
        return 1
    given = re.search(rf"""\bname["']?\s*:\s*["']?{re.escape(name)}["']?\s*(?:[,}}\r\n]|$)""", text)
    return 1 if given is None else 1 + text.count("\n", 0, given.start())


def name_in(content: Any) -> str:
    """The name that a definition gives, unchecked; '' if it gives none."""
    function = content.get("function") if isinstance(content, dict) else None
    named = function if isinstance(function, dict) else content
    name = named.get("name") if isinstance(named, dict) else None
    return name if isinstance(name, str) else ""


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def in_parts(
    definitions: Sequence[Definition], most: int, most_bytes: int
) -> Iterator[tuple[bytes, list[Definition]]]:
    """The definitions as bodies of requests: at most so many and so long, each of one form.

    A definition that is too long alone is a body of its own, for the server to refuse.
    """
    part: list[Definition] = []
    texts: list[str] = []
    size = 0
    for each in definitions:
        text = json.dumps(each.content)
        is_full = len(part) == most or size + len(text) > most_bytes
        if part and (is_full or each.is_own != part[0].is_own):
            yield _body(part, texts), part
            part, texts, size = [], [], 0
        part.append(each)
        texts.append(text)
        size += len(text) + 1
    if part:
        yield _body(part, texts), part


def _body(part: Sequence[Definition], texts: Sequence[str]) -> bytes:
    head = f'"format": "{REGISTRY_FORMAT}", "version": 1, ' if part[0].is_own else ""
    return f'{{{head}"tools": [{", ".join(texts)}]}}'.encode()
