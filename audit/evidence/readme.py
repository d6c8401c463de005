"""The readme at the start of a bundle: what the bundle is and how to verify it."""

from tooltrail.evidence import Manifest

_TEXT = """\
EVIDENCE OF TOOL CALLS

This bundle contains the events that programs of the tenant {tenant} sent to Tooltrail, byte for
byte, and everything needed to verify that none was altered since. The format is described in
docs/evidence.md of Tooltrail, so anyone can write a program that verifies it.

  Ledger    {origin}
  Range     {range}
  Entries   {first_index} to {last_index}{none}
  Created   {made_at}, for {made_by}

HOW TO VERIFY IT

    pip install 'tooltrail[verify]'
    tooltrail verify FILE.zip --key KEY

This works without a server. KEY is the public key of the ledger. Get it from the operators of
Tooltrail or from its page "Ledger", not from this file. With "--previous FILE" and a checkpoint
that you have kept, the command also checks that the ledger has only grown since.

CONTENTS

  bundle.json        the description: range, ledger, creator and time of creation
  entries/           each entry of the ledger: index, leaf hash, kind, ids, time and salt
  events/            the events as received, one per line, in the order of the entries
  erasures.ndjson    the ledger entries that declare payloads as erased, with their proofs
  registry.ndjson    versions of registered tools published before the end of the range{left_out}
  statements.ndjson  the entries that say what was published{reported}, with their proofs
{report}{sample}{timeline}  checkpoints/       size and root of the ledger, signed
  tree.json          the hashes that lead from these entries to the root of the largest checkpoint
  keys.txt           the public keys, according to the server

{contains} For an erased event,
the bundle contains its leaf and the entry that declares the erasure.

LIMITS

The bundle does not prove that programs reported everything, or that the server's clock was right.
Without a checkpoint that you or somebody else kept, it does not prove that the server shows
everyone the same ledger. {figures}Events may contain personal data: protect this file accordingly.
"""
_REPORT = "  report.json        the report, as it was stored when it was made\n"
_SAMPLE = """\
  sample.json        the auditor's sample: what it is of, the draw, conclusions
  population.bin     the calls that it was drawn from: 40 bytes each, ledger index and leaf
"""
_TIMELINE = """\
  timeline.json      the timeline of the incident, as it was made
  timeline.html      the same, to read in a browser; it loads nothing
"""
_OF_RANGE = """\
The bundle contains the entries received in the range, and all entries of the calls that started in
it. One more entry on either side proves that the range has no entries beyond them."""
_OF_SAMPLE = """\
The bundle contains the entries from the first call of the population to the last entry of a drawn
call."""
_FIGURES = (
    "That the figures\nof the report are right is not proved, but they can be recomputed from the"
    " events. "
)


def readme(
    manifest: Manifest,
    *,
    has_report: bool,
    has_sample: bool = False,
    has_timeline: bool = False,
    versions_left_out: int = 0,
) -> str:
    """The readme's text with the facts of this bundle."""
    left_out = (
        f",\n                     without the {versions_left_out} oldest,"
        " which exceed the size limit"
    )
    return _TEXT.format(
        tenant=manifest.tenant,
        origin=manifest.origin,
        range="of ledger indexes, for an auditor's sample"
        if has_sample
        else f"from {manifest.start} to {manifest.end} (UTC)",
        first_index=manifest.first_index,
        last_index=manifest.end_index - 1,
        none="" if manifest.end_index > manifest.first_index else " (none)",
        made_at=manifest.made_at,
        made_by=manifest.made_by,
        report=_REPORT if has_report else "",
        sample=_SAMPLE if has_sample else "",
        timeline=_TIMELINE if has_timeline else "",
        contains=_OF_SAMPLE if has_sample else _OF_RANGE,
        reported=" and created" if has_report else "",
        figures=_FIGURES if has_report else "",
        left_out=left_out if versions_left_out else "",
    )
