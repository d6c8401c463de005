"""Every option of a `Trail`: its name, type, environment variable, default and meaning.

Owns reading them, in the order argument, environment, default. An invalid argument is a bug of
the program and raises ValueError. An invalid environment variable must not stop a host that
used to start: it is logged as a warning, and the default applies.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

logger = logging.getLogger("tooltrail")

SpoolMode = Literal["process", "fsync", "memory"]
CaptureMode = Literal["full", "shape", "none"]
WhenFull = Literal["drop", "raise"]
RegisterMode = Literal["warn", "strict"]

MIB = 1024 * 1024


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return str(value)

    return read


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError("expected a number greater than 0")
    return number


def _bytes(value: Any) -> int:
    return int(_positive(value))


def _path(value: Any) -> Path:
    return Path(value).expanduser()


def _option[T](env: str, read: Callable[[Any], T], default: T, doc: str) -> T:
    metadata = {"env": env, "read": read, "doc": doc}
    chosen: T = field(default=default, metadata=metadata)
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options in effect. Each member's metadata holds `env`, `read` and `doc`."""

    url: str | None = _option(
        "TOOLTRAIL_URL", str, None, "The server's URL. Without it nothing is recorded."
    )
    api_key: str | None = _option(
        "TOOLTRAIL_API_KEY", str, None, "An API key with the scope `ingest`. Required with a URL."
    )
    spool: str = _option(
        "TOOLTRAIL_SPOOL",
        _one_of("process", "fsync", "memory"),
        "process",
        "`process`: events are on file before the call continues and survive a killed process. "
        "`fsync`: they also survive a power cut. `memory`: they survive nothing.",
    )
    spool_dir: Path | None = _option(  # noqa: RUF009  # makes a field, as the others do
        "TOOLTRAIL_SPOOL_DIR",
        _path,
        None,
        "Folder of the spool. Default: `tooltrail` in the user's state directory.",
    )
    max_bytes: int = _option(
        "TOOLTRAIL_MAX_BYTES",
        _bytes,
        256 * MIB,
        "Maximum size of one spool, for all its processes (`memory`: for this process).",
    )
    max_age_days: float = _option(
        "TOOLTRAIL_MAX_AGE_DAYS", _positive, 7.0, "Maximum age of waiting events, in days."
    )
    when_full: str = _option(
        "TOOLTRAIL_WHEN_FULL",
        _one_of("drop", "raise"),
        "drop",
        "`drop`: payloads are dropped first, then the oldest events; every loss is reported. "
        "`raise`: a tool that cannot be recorded does not run.",
    )
    register: str = _option(
        "TOOLTRAIL_REGISTER",
        _one_of("warn", "strict"),
        "warn",
        "For a tool that the registry rejects: `warn` logs one warning and runs it. `strict` "
        "checks before its first run, and raises `ToolNameTaken` or `ToolContractRefused`.",
    )
    capture: str = _option(
        "TOOLTRAIL_CAPTURE",
        _one_of("full", "shape", "none"),
        "full",
        "What is recorded of arguments and results: everything, their structure, or nothing.",
    )
    max_payload_bytes: int = _option(
        "TOOLTRAIL_MAX_PAYLOAD_BYTES",
        _bytes,
        256 * 1024,
        "Maximum size of arguments or result as JSON; larger ones are cut to their beginning.",
    )
    exit_timeout: float = _option(
        "TOOLTRAIL_EXIT_TIMEOUT",
        _positive,
        2.0,
        "Seconds to send events when the process exits; the rest waits on file.",
    )

    @classmethod
    def resolve(cls, **given: Any) -> "Settings":
        """Take each option from `given` if it is not None, else from its variable, else default.

        Raises ValueError for an invalid argument, TypeError for an unknown one.
        """
        values: dict[str, Any] = {}
        for option in fields(cls):
            env, read = option.metadata["env"], option.metadata["read"]
            argument = given.pop(option.name, None)
            if argument is not None:
                try:
                    values[option.name] = read(argument)
                except (TypeError, ValueError) as error:
                    raise ValueError(f"{option.name}: {error}") from None
            elif text := os.environ.get(env, "").strip():
                try:
                    values[option.name] = read(text)
                except ValueError as error:
                    logger.warning("%s is ignored: %s", env, error)
        if given:
            raise TypeError(f"unknown options: {', '.join(given)}")
        return cls(**values)


def default_spool_dir() -> Path:
    """The default folder of spools: `tooltrail` in the user's state directory."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "tooltrail"
