"""An inclusion proof as a file download."""

from django.http import HttpResponse
from tooltrail.ledger.proof_file import SUFFIX

from audit.ledger.entry_view import EntryView
from audit.ledger.proofs import Inclusion


def proof_file(proof: Inclusion, view: EntryView) -> HttpResponse:
    """A file of https://c2sp.org/tlog-proof. `extra` is the entry, unless the event was erased."""
    extra = None if view.entry is None else view.entry.to_bytes()
    return HttpResponse(
        proof.to_file(extra),
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="entry-{proof.index}{SUFFIX}"'},
    )
