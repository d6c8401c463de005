"""Ask one witness to sign one checkpoint, over HTTP: https://c2sp.org/tlog-witness."""

from dataclasses import dataclass
from http import HTTPStatus

import requests
from django.conf import settings
from tooltrail.ledger import Checkpoint, LedgerError, parse_note
from tooltrail.ledger.add_checkpoint import PATH, SIZE_TYPE, AddCheckpoint
from tooltrail.ledger.cosignature import cosigned_by
from tooltrail.ledger.lines import from_decimal
from tooltrail.ledger.note import Signature

from audit.ledger.witnesses.policy import Witness
from audit.models import WitnessOutcome
from config.http.outbound import guarded_session, one_line, reason_of

_LATER = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_LINES_MAX = 10


@dataclass(frozen=True, slots=True)
class WitnessReply:
    """How a witness answered."""

    outcome: WitnessOutcome
    line: str = ""
    """Its signature, a line of a note; '' unless it signed."""
    problem: str = ""
    """Why it did not, for people."""
    known: int | None = None
    """The size that it signed last, if it wants the proof from there."""


def ask(witness: Witness, request: AddCheckpoint) -> WitnessReply:
    """Ask for a signature on the checkpoint in a request. Raises nothing.

    The request leaves only to public addresses, and those of TOOLTRAIL_WITNESS_ALLOW. Takes no
    connection of the database, so it can run in any thread.
    """
    try:
        with guarded_session(settings.WITNESS_ALLOW) as session:
            response = session.post(f"{witness.url}{PATH}", data=request.to_bytes())
        known = _known_size(response)
        if known is None:
            return _read(witness, request.note, response)
    except requests.RequestException as error:
        return WitnessReply(WitnessOutcome.SILENT, problem=reason_of(error))
    except LedgerError as error:
        return WitnessReply(WitnessOutcome.REFUSED, problem=one_line(f"It answered that {error}."))
    size = Checkpoint.parse(parse_note(request.note)[0]).size
    problem = f"It does not accept the size {request.old:,}."
    if known > size:
        problem = f"It has signed {known:,} entries, and this ledger has {size:,}."
    wants_other = known <= size and known != request.old
    return WitnessReply(
        WitnessOutcome.REFUSED, problem=problem, known=known if wants_other else None
    )


def _known_size(response: requests.Response) -> int | None:
    """The size that the witness signed last, if it answers that ours is another one."""
    if response.status_code != HTTPStatus.CONFLICT:
        return None
    if response.headers.get("Content-Type", "") != SIZE_TYPE:
        return None
    return from_decimal(response.content.decode("ascii", "replace").removesuffix("\n"), "its size")


def _read(witness: Witness, note: bytes, response: requests.Response) -> WitnessReply:
    text = response.content.decode(errors="replace")
    status = response.status_code
    if status != HTTPStatus.OK:
        is_silent = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _LATER
        outcome = WitnessOutcome.SILENT if is_silent else WitnessOutcome.REFUSED
        return WitnessReply(outcome, problem=f"It answered {status}: {one_line(text)}")
    for line in text.split("\n")[:_LINES_MAX]:
        try:
            signature = Signature.parse(line)
            if cosigned_by(parse_note(note)[0], [signature], [witness.key]):
                return WitnessReply(WitnessOutcome.SIGNED, line=str(signature))
        except LedgerError:
            continue
    return WitnessReply(
        WitnessOutcome.REFUSED, problem="Its answer has no valid signature of its key."
    )
