"""The filter names of the query language, from the table the parser reads."""

from collections.abc import Iterator

from audit.queries.filter_names import FILTER_NAMES, FilterName, Kind
from docs.site.reference.markdown import table

_VALUES = {
    Kind.TEXT: "text; `*` at the end matches a prefix",
    Kind.DURATION: "duration, such as `2s` or `>500ms`",
    Kind.COUNT: "number, such as `>10k`",
    Kind.AMOUNT: "amount, such as `>0.01`; `none`",
    Kind.MOMENT: "time, day or how long ago",
}


def queries() -> Iterator[str]:
    """The page."""
    yield "# Filter names\n"
    yield (
        "Every filter name of [the query language](/queries.md) in this version. Values in"
        " arguments and outputs are found by `args.` and `output.`, which are described there.\n"
    )
    rows = [
        (f"`{one.name}:`", one.meaning, _values(one), f"`{one.example}`")
        for one in FILTER_NAMES.values()
    ]
    yield from table(("Name", "Meaning", "Values", "Example"), rows)


def _values(one: FilterName) -> str:
    if one.kind is Kind.CHOICE:
        return ", ".join(f"`{word}`" for word in one.choices)
    return _VALUES[one.kind] + ("; `*` alone: any" if one.takes_any else "")
