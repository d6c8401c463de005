"""Proofs and keys as file downloads: for C2SP's tools, or for those of COSE."""

import json

from django.http import HttpResponse
from tooltrail.ledger.proof_file import SUFFIX

from audit.ledger.entry_view import EntryView
from audit.ledger.proofs import Inclusion
from audit.ledger.statements import entry_statement, key_set

COSE = "application/cose"
KEY_SET = "application/jwk-set+json"


def proof_file(proof: Inclusion, view: EntryView) -> HttpResponse:
    """A file of https://c2sp.org/tlog-proof. `extra` is the entry, unless the event was erased."""
    extra = None if view.entry is None else view.entry.to_bytes()
    return HttpResponse(
        proof.to_file(extra),
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="entry-{proof.index}{SUFFIX}"'},
    )


def statement_file(proof: Inclusion, view: EntryView) -> HttpResponse:
    """A signed statement with its receipts (`audit.ledger.statements`). Raises as that does."""
    return HttpResponse(
        entry_statement(proof, view),
        content_type=f'{COSE}; cose-type="cose-sign1"',
        headers={"Content-Disposition": f'attachment; filename="entry-{proof.index}.cose"'},
    )


def key_set_file() -> HttpResponse:
    """The public keys of statements and receipts as a JWK Set (RFC 7517).

    Needs the scope. Raises BoxError.
    """
    return HttpResponse(
        json.dumps({"keys": key_set()}),
        content_type=KEY_SET,
        headers={"Content-Disposition": 'attachment; filename="keys.jwks"'},
    )
