"""An artifact that holds JSON: one value, or one value per line."""

import json
from collections.abc import Callable
from typing import Any, Literal

from tooltrail.tools.artifacts import SpooledArtifact, SpoolReader
from tooltrail.tools.jsonpath import compile_path

JsonFormat = Literal["json", "jsonl", "ndjson"]


class SpooledJsonArtifact(SpooledArtifact):
    """JSON by line and by path. With one value per line (`jsonl`) each line is a record.

    Without `format` it is detected from the content. The methods raise json.JSONDecodeError (a
    ValueError) if the content does not have that format, and ValueError for a path that
    `tooltrail.tools.jsonpath` does not support. Source: the ADK's `SpooledJsonArtifact`, without
    JSON5.
    """

    def __init__(self, reader: SpoolReader, format: JsonFormat | None = None) -> None:
        super().__init__(reader)
        self._format = format
        self._loaded: tuple[JsonFormat, list[Any]] | None = None

    async def json_type(self) -> JsonFormat:
        """The format, given or detected."""
        return (await self._load())[0]

    async def json_length(self) -> int:
        """The number of records, 1 for a single value."""
        return len((await self._load())[1])

    async def json_keys(self) -> list[str] | None:
        """The member names of all records, each once; None if no record is an object."""
        objects = [record for record in (await self._load())[1] if isinstance(record, dict)]
        return list({name: None for record in objects for name in record}) if objects else None

    async def json_get(self, path: str) -> list[Any]:
        """The values at the path, in every record."""
        select = compile_path(path)
        return [hit for record in (await self._load())[1] for hit in select(record)]

    async def json_pluck(self, path: str) -> list[Any]:
        """The same as `json_get`, under the ADK's name for records."""
        return await self.json_get(path)

    async def json_slice(self, start: int = 0, end: int | None = None) -> list[Any]:
        """The records from `start` up to but without `end`; a single value is always returned."""
        kind, records = await self._load()
        return list(records) if kind == "json" else records[start:end]

    async def json_filter(self, path: str) -> list[Any]:
        """The records that have a value at the path."""
        select: Callable[[Any], list[Any]] = compile_path(path)
        return [record for record in (await self._load())[1] if select(record)]

    async def _load(self) -> tuple[JsonFormat, list[Any]]:
        if self._loaded is None:
            self._loaded = _parse(await self.as_string(), self._format)
        return self._loaded


def _parse(text: str, given: JsonFormat | None) -> tuple[JsonFormat, list[Any]]:
    if given in (None, "json"):
        try:
            return "json", [json.loads(text)]
        except json.JSONDecodeError:
            if given is not None:
                raise
    records = [json.loads(line) for line in text.split("\n") if line.strip()]
    return given or "jsonl", records
