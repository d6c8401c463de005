"""The filters of a page's URL, each of which the page offers to remove. Pure."""

from collections.abc import Mapping
from typing import NamedTuple


class ActiveFilter(NamedTuple):
    """A filter of the URL: parameter, label and value."""

    name: str
    label: str
    value: str

    @property
    def without(self) -> dict[str, None]:
        """The parameters to remove from the URL. A version is one of a tool, so it goes with it."""
        return dict.fromkeys(("tool", "version") if self.name == "tool" else (self.name,))


def active_filters(wanted: object, labels: Mapping[str, str]) -> list[ActiveFilter]:
    """The members of `wanted` that are set, in the order of `labels` (label by member)."""
    return [
        ActiveFilter(name, label, value)
        for name, label in labels.items()
        if (value := getattr(wanted, name)) is not None
    ]
