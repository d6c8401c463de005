"""What `tooltrail query calls --follow` shows, and when."""

from typing import Any

from tooltrail.cli.follow import _REMEMBERED, Follower


def row(n: int, state: str = "open") -> dict[str, Any]:
    return {"invocation_id": f"{n:06}", "started_at": f"2026-01-01T00:00:{n:06}", "state": state}


def test_rows_are_shown_once_and_again_with_another_state() -> None:
    follower = Follower()
    assert follower.fresh([row(3), row(2), row(1)], 2) == [row(2), row(3)]
    assert follower.fresh([row(3), row(2), row(1)]) == []
    assert follower.fresh([row(4), row(3, "success"), row(2)]) == [row(3, "success"), row(4)]
    # A call of an executor that was cut off is not the newest one.
    assert follower.fresh([row(4), row(0), row(2)]) == [row(0)]


def test_memory_of_shown_rows_is_bounded() -> None:
    follower = Follower()
    for n in range(2 * _REMEMBERED):
        assert follower.fresh([row(n)]) == [row(n)]
    assert len(follower._shown) == _REMEMBERED
    assert follower.fresh([row(2 * _REMEMBERED - 1)]) == []
