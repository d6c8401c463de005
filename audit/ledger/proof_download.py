"""A proof as a file that browsers and programs save."""

from django.http import HttpResponse
from tooltrail.ledger.proof_file import SUFFIX

from audit.ledger.entry_view import EntryView
from audit.ledger.proofs import Inclusion


def proof_file(proof: Inclusion, view: EntryView) -> HttpResponse:
    """https://c2sp.org/tlog-proof; its `extra` is the entry, where the event was not erased."""
    extra = None if view.entry is None else view.entry.to_bytes()
    return HttpResponse(
        proof.to_file(extra),
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="entry-{proof.index}{SUFFIX}"'},
    )
