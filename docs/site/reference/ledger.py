"""What the ledger has entries of, and the groups of actions, from the code that writes them."""

from collections.abc import Iterator

from tooltrail.ledger.leaf import VERSION, Kind

from audit.queries.actions import VERBS
from docs.site.reference.markdown import table

_RECORDS = {
    Kind.START: "the start of a call, as an executor sent it",
    Kind.END: "the end of a call, as an executor sent it",
    Kind.GAP: "the loss of events that a producer declared",
    Kind.ACTION: "an action: a line of the audit log",
    Kind.ERASURE: "an erasure: which calls lost their payloads, and why",
    Kind.RETENTION: "payloads or days that expired",
    Kind.HOLD: "a legal hold that was set or released",
    Kind.KEY: "a key that begins or stops signing",
    Kind.EPOCH: "a new beginning of the ledger, after a restored backup",
    Kind.FINDING: "violations in an output that the server validated on arrival",
    Kind.DECISION: "a decision about a call: approved, denied, over budget",
    Kind.DEFINITION: "a changed definition of a server's tool",
    Kind.BASELINE: "the digests of the rows that existed before actions named them",
}


def ledger() -> Iterator[str]:
    """The page."""
    yield "# Entries of the ledger\n"
    yield (
        f"The kinds of entries, in version {VERSION} of the entry's form. What an entry contains"
        " and how it is proved: [the ledger](/ledger.md).\n"
    )
    rows = [(str(int(kind)), f"`{kind.name}`", _RECORDS[kind]) for kind in Kind]
    yield from table(("Number", "Kind", "What it records"), rows)
    yield "## Actions\n"
    yield (
        "An entry of the kind `ACTION` is one line of the audit log. Its verb begins with one of"
        " these words.\n"
    )
    yield from table(
        ("Verbs", "About"), [(f"`{prefix}…`", label) for prefix, label in VERBS.items()]
    )
