"""The readme at the start of a bundle: what the bundle is and how to verify it."""

from tooltrail.evidence import Manifest

_TEXT = """\
EVIDENCE OF TOOL CALLS

What programs of the tenant {tenant} reported to Tooltrail, as it was received, byte for byte, with
all it takes to check that nothing was altered since. The format is described in docs/evidence.md
of Tooltrail; anybody may write a program that checks it.

  Ledger    {origin}
  Range     from {start} to {end} (UTC)
  Entries   {first_index} to {last_index}{none}
  Made      {made_at}, for {made_by}

HOW TO CHECK IT

    pip install 'tooltrail[verify]'
    tooltrail verify FILE.zip --key KEY

No server is asked. KEY is the public key of the ledger: get it from the people who run Tooltrail,
or its page "Ledger", not from this file. With "--previous FILE" and a checkpoint you have kept it
is also checked that the ledger has only grown since.

WHAT IS IN IT

  bundle.json        what this is to be: range, ledger, by whom and when it was made
  entries/           each entry of the ledger: its place, leaf hash, kind, ids, time and salt
  events/            the events, a line each, as they were received, in the order of the entries
  erasures.ndjson    entries of the ledger that say which payloads were erased, with their proof
  registry.ndjson    versions of registered tools published before the end of the range{left_out}
{report}  checkpoints/       size and root of the ledger, signed
  tree.json          hashes that lead from these entries to the root of the largest checkpoint
  keys.txt           the public keys, as the server names them

The entries are those received in the range, and of calls that began in it those that came at
another time. One more on either side shows that nothing of the range lies outside. Of an erased
event its leaf is here, and the entry that says so.

WHAT IT CANNOT SHOW

That the server was told everything; that its clock was right; and, without a checkpoint of your
own or somebody else's, that it shows everybody the same ledger. {figures}Events may hold personal
data: keep this file as you keep those.
"""
_REPORT = "  report.json        the report, as it was stored when it was made\n"
_FIGURES = (
    "The report's figures are not proved:\nthe events are what they can be counted again from. "
)


def readme(manifest: Manifest, *, has_report: bool, versions_left_out: int = 0) -> str:
    """The readme's text with the facts of this bundle."""
    left_out = (
        f",\n                     but for the {versions_left_out} oldest, which are too much for it"
    )
    return _TEXT.format(
        tenant=manifest.tenant,
        origin=manifest.origin,
        start=manifest.start,
        end=manifest.end,
        first_index=manifest.first_index,
        last_index=manifest.end_index - 1,
        none="" if manifest.end_index > manifest.first_index else " (none)",
        made_at=manifest.made_at,
        made_by=manifest.made_by,
        report=_REPORT if has_report else "",
        figures=_FIGURES if has_report else "",
        left_out=left_out if versions_left_out else "",
    )
