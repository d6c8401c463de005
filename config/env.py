"""Typed readers of environment variables. They raise an error for an invalid value.

Every reader also accepts `NAME_FILE`, the path of a file with the value (mounted secrets).
"""

import os
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path


class EnvironmentVariableError(Exception):
    """An environment variable is missing or invalid. The message names it and the remedy."""


def text(name: str, default: str | None = None) -> str:
    """Return the variable's text. Raises EnvironmentVariableError if unset without a default."""
    value = _read(name)
    if value is not None:
        return value
    if default is None:
        raise EnvironmentVariableError(f"{name} is not set")
    return default


def boolean(name: str, *, default: bool) -> bool:
    """Return True for 1/true/yes/on and False for 0/false/no/off, in any case."""
    value = _read(name)
    if value is None:
        return default
    if value.lower() in {"1", "true", "yes", "on"}:
        return True
    if value.lower() in {"0", "false", "no", "off"}:
        return False
    raise EnvironmentVariableError(f"{name} must be true or false, not {value!r}")


def integer(name: str, default: int, *, minimum: int = 0) -> int:
    """Return a whole number of at least `minimum`."""
    value = _read(name)
    if value is None:
        return default
    try:
        number = int(value)
    except ValueError:
        raise EnvironmentVariableError(f"{name} must be a whole number, not {value!r}") from None
    if number < minimum:
        raise EnvironmentVariableError(f"{name} must be at least {minimum}, not {number}")
    return number


def choice(name: str, first: str, *others: str) -> str:
    """Return one of these words. The first is the default."""
    value = _read(name) or first
    if value not in (first, *others):
        allowed = " or ".join((first, *others))
        raise EnvironmentVariableError(f"{name} must be {allowed}, not {value!r}")
    return value


def words(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Return a list that is separated by commas or white space."""
    value = _read(name)
    return list(default) if value is None else value.replace(",", " ").split()


@dataclass(frozen=True, slots=True)
class Opening:
    """A network, or one port of it (None: every port)."""

    network: IPv4Network | IPv6Network
    port: int | None = None


def openings(name: str) -> list[Opening]:
    """Return networks, with or without a port: `10.1.0.0/16`, `10.1.2.3:25`, `[fd00::1]:25`."""
    try:
        return [_opening(word) for word in words(name)]
    except ValueError as error:
        raise EnvironmentVariableError(f"{name}: {error}") from None


def _opening(word: str) -> Opening:
    bracket, _, rest = word.partition("]")
    network, port = (bracket[1:], rest) if word.startswith("[") else (word, "")
    if word.count(":") == 1:
        network, _, port = word.partition(":")
    port = port.removeprefix(":")
    if port and not (port.isdecimal() and 0 < int(port) < 65_536):
        raise ValueError(f"{port!r} is no port")
    return Opening(ip_network(network), int(port) if port else None)


def _read(name: str) -> str | None:
    value = os.environ.get(name)
    if value is None and (path := os.environ.get(f"{name}_FILE")):
        try:
            value = Path(path).read_text().strip()
        except OSError as error:
            raise EnvironmentVariableError(f"{name}_FILE: {error.strerror}: {path}") from error
    return value or None
