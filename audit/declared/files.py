"""Reads files of configuration, and the secrets that they refer to."""

import io
import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from audit.declared.document import DeclaredTenant, Document, Installation, Secret
from tools_registry.contract_check import refuse_constant, refuse_twice

SECRET_MAX_BYTES = 10_000


class UnreadableFileError(ValueError):
    """A file cannot be used. `problems` says why, each with file and path."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class SecretError(ValueError):
    """A secret cannot be read; the message says why and never what it is."""


@dataclass(frozen=True, slots=True)
class Source:
    """A tenant in a file."""

    file: str
    folder: Path
    """Paths in the file are relative to it."""
    path: str
    """Of the tenant in the file, such as `tenants[0]`."""
    tenant: DeclaredTenant


@dataclass
class Secrets:
    """The secrets that a file refers to, and those that are made for it."""

    folder: Path
    _made: dict[Path, str] = field(default_factory=dict)

    def read(self, reference: Secret) -> str | None:
        """The secret; None if the variable or the file does not exist. Raises SecretError."""
        if reference.env:
            return os.environ.get(reference.env) or None
        path = self._path(reference)
        if path in self._made:
            return self._made[path]
        try:
            with path.open("rb") as file:
                text = file.read(SECRET_MAX_BYTES + 1).decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SecretError(f"{path} cannot be read ({type(error).__name__})") from None
        if len(text) > SECRET_MAX_BYTES or not text.strip():
            raise SecretError(f"{path} is empty or too long for a secret")
        return text.strip()

    def make(self, reference: Secret, text: str) -> None:
        """Remember a new secret for its file; `write` stores it."""
        self._made[self._path(reference)] = text

    def write(self) -> None:
        """Write what was made to its files, which only the owner can read. Raises SecretError.

        Call it before the transaction ends: a secret that is written and not stored is read and
        used the next time, while one that is stored and not written would be lost.
        """
        for path, text in self._made.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w") as file:
                    file.write(f"{text}\n")
            except OSError as error:
                raise SecretError(f"{path} cannot be written ({error.strerror})") from None

    def _path(self, reference: Secret) -> Path:
        return self.folder / reference.file


def missing(reference: Secret) -> str:
    """Why a secret is not there."""
    if reference.env:
        return f"the environment variable {reference.env} is not set"
    return f"the file {reference.file} does not exist"


@dataclass(frozen=True, slots=True)
class InstallationSource:
    """What a file says about the installation."""

    file: str
    folder: Path
    wanted: Installation


@dataclass(frozen=True, slots=True)
class File:
    """A file that was read."""

    tenants: list[Source]
    installation: InstallationSource | None


def read_file(name: str, data: bytes, folder: Path) -> File:
    """The tenants of a file, and the installation's part. Raises UnreadableFileError."""
    try:
        value = _plain(_parse(name, data), name, "")
    except RecursionError:
        raise UnreadableFileError(f"{name}: is nested too deeply") from None
    try:
        document = Document.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise UnreadableFileError(*_problems(name, error, value)) from None
    tenants = [
        Source(name, folder, f"tenants[{index}]", tenant)
        for index, tenant in enumerate(document.tenants)
    ]
    wanted = document.installation
    return File(tenants, None if wanted is None else InstallationSource(name, folder, wanted))


def check_twins(files: Collection[File]) -> None:
    """Raise UnreadableFileError if a tenant, or a name in one of its sections, is there twice."""
    problems = []
    sources = [source for file in files for source in file.tenants]
    parts = [file.installation for file in files if file.installation is not None]
    problems += [f"{part.file}: installation: is already in {parts[0].file}" for part in parts[1:]]
    for part in parts:
        known: dict[str, int] = {}
        for index, one in enumerate(part.wanted.identity_providers or ()):
            if (before := known.setdefault(one.name, index)) != index:
                problems.append(
                    f"{part.file}: installation.identity_providers[{index}]: has the name of"
                    f" identity_providers[{before}]"
                )
    places: dict[str, str] = {}
    for source in sources:
        place = f"{source.file}: {source.path}"
        first = places.setdefault(source.tenant.slug, place)
        if first != place:
            problems.append(f"{place}.slug: is already at {first}")
        for section, names in _names(source.tenant):
            seen: dict[object, int] = {}
            for index, each in enumerate(names):
                if (before := seen.setdefault(each, index)) != index:
                    problems.append(
                        f"{place}.{section}[{index}]: has the name of {section}[{before}]"
                    )
    if problems:
        raise UnreadableFileError(*problems)


def _names(tenant: DeclaredTenant) -> Iterator[tuple[str, list[object]]]:
    yield "members", [one.user for one in tenant.members or ()]
    yield "service_accounts", [one.name for one in tenant.service_accounts or ()]
    yield "keys", [one.name for one in tenant.keys or ()]
    yield "channels", [one.name for one in tenant.channels or ()]
    yield "alert_rules", [one.name for one in tenant.alert_rules or ()]
    yield "maintenance_windows", [one.name for one in tenant.maintenance_windows or ()]
    yield "polling_tools", list(tenant.polling_tools or ())
    yield "checks_on_arrival", list(tenant.checks_on_arrival or ())
    yield "price_lists", [one.holds_from for one in tenant.price_lists or ()]
    yield "boards", [one.name for one in tenant.boards or ()]
    yield "saved_views", [(one.owner, one.name) for one in tenant.saved_views or ()]


def _parse(name: str, data: bytes) -> Any:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFileError(f"{name}: is not UTF-8") from None
    is_json = name.endswith(".json") or text.lstrip().startswith("{")
    try:
        if is_json:
            return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_twice)
        # YAML 1.2: `on` and `yes` are texts, as they are in JSON.
        return YAML(typ="safe", pure=True).load(io.StringIO(text))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UnreadableFileError(f"{name}: {where}: {error.msg}") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UnreadableFileError(f"{name}: {where}{error.problem}") from None
    except YAMLError as error:
        raise UnreadableFileError(f"{name}: {str(error).splitlines()[0]}") from None
    except ValueError as error:
        raise UnreadableFileError(f"{name}: {error}") from None


def _plain(value: Any, name: str, path: str) -> Any:
    """A value of YAML as one of JSON. Raises UnreadableFileError."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            if value == value and abs(value) != float("inf"):
                return value
        case date():  # an unquoted day: a text, as everywhere in JSON
            return value.isoformat()
        case dict():
            for key in value:
                if not isinstance(key, str):
                    where = f"{name}: {path or 'document'}"
                    raise UnreadableFileError(f"{where}: the name {key!r} must be in quotes")
            return {
                key: _plain(each, name, f"{path}.{key}".lstrip(".")) for key, each in value.items()
            }
        case list():
            return [_plain(each, name, f"{path}[{index}]") for index, each in enumerate(value)]
    raise UnreadableFileError(f"{name}: {path}: {value!r} is no value of JSON")


def _problems(name: str, error: ValidationError, value: Any) -> Iterator[str]:
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        path, here = "", value
        for number, part in enumerate(one["loc"], 1):
            is_missing = one["type"] == "missing" and number == len(one["loc"])
            if isinstance(part, int):
                path += f"[{part}]"
                here = here[part] if isinstance(here, list) and part < len(here) else None
            elif isinstance(here, dict) and (part in here or is_missing):
                path += f".{part}"
                here = here.get(part)
            # Others are the names that pydantic gives to the choices of a union.
        message = one["msg"].removeprefix("Value error, ").rstrip(".")
        yield f"{name}: {path.lstrip('.') or 'document'}: {message}"
