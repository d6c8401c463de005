"""The file of an incident's bundle, altered by whoever has it before the auditor."""

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.support.tampering.files import Edit, Members, of_file, without_entries
from tests.support.tampering.finders import Finder
from tests.support.tampering.kinds import Tampering

TIMELINE, PAGE = "timeline.json", "timeline.html"


def kinds() -> Iterator[Tampering]:
    """Kinds that change what a bundle tells of an incident."""
    yield _of("an item was taken out of the timeline of an incident", _without_item)
    yield _of("an item of the timeline of an incident was changed", _with_other_item)
    yield _of("the timeline of an incident got the id of another one", _with_other_id)
    yield _of("the page of the timeline of an incident was changed", _edit_page)
    yield _of(
        "the entry of the timeline of an incident was taken out",
        without_entries("incident.timeline"),
    )


def _of(what: str, edit: Edit) -> Tampering:
    return of_file(what, edit, Finder.BUNDLE, why="", path=lambda record: record.incident)


def _document(members: Members, change: dict[str, Any]) -> None:
    members[TIMELINE] = json.dumps(json.loads(members[TIMELINE]) | change).encode()


def _without_item(members: Members, rng: random.Random) -> None:
    items = json.loads(members[TIMELINE])["items"]
    del items[rng.randrange(len(items))]
    _document(members, {"items": items})


def _with_other_item(members: Members, rng: random.Random) -> None:
    items = json.loads(members[TIMELINE])["items"]
    rng.choice(items)["at"] = "2026-01-01T00:00:00Z"
    _document(members, {"items": items})


def _with_other_id(members: Members, _: random.Random) -> None:
    _document(members, {"id": "01a20108-bf2d-737e-8cda-6686052dfb51"})


def _edit_page(members: Members, _: random.Random) -> None:
    members[PAGE] = members[PAGE].replace(b"</html>", b"<p>forged</p></html>")
