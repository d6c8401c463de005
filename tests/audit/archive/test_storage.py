"""Destroying the keys of an archive takes minutes: who may write is asked again and again."""

from typing import Any
from uuid import UUID

import pytest

from audit.archive.storage import Storage
from config.http.bucket import Version

TENANT = UUID(int=1)


class Keys:
    """A bucket in memory that notes what is done."""

    def __init__(self, count: int) -> None:
        self.left = [Version(f"{TENANT}/{number:020}", "1") for number in range(count)]
        self.done: list[str] = []

    def versions(self, prefix: str) -> list[Version]:
        return [each for each in self.left if each.key.startswith(prefix)]

    def delete(self, version: Version) -> None:
        self.left.remove(version)
        self.done.append("delete")


@pytest.mark.parametrize("count", [0, 1, 100, 250])
def test_lock_is_asked_for_between_deletions(count: int) -> None:
    """PostgreSQL ends a transaction that is silent for minutes, and with it the lock."""
    keys: Any = Keys(count)
    Storage(keys, keys, ("", "")).destroy_keys_from(TENANT, 0, lambda: keys.done.append("ask"))

    assert keys.left == []
    assert keys.done.count("delete") == count
    silent = "".join(each[0] for each in keys.done).split("a")
    assert max(map(len, silent)) <= 100
    assert keys.done[0] == "ask"
    assert keys.done[-1] == "ask"
