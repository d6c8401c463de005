"""Ask a time authority for a token over a checkpoint: RFC 3161 over HTTP."""

from http import HTTPStatus
from urllib.parse import urlsplit

import requests
from django.conf import settings
from tooltrail.ledger import FormatError, parse_note
from tooltrail.ledger.timestamp import QUERY_TYPE, timestamp_line, timestamp_query, token_in

from audit.ledger.witnesses.asking import WitnessReply
from audit.models import WitnessOutcome
from config.http.outbound import guarded_session, one_line, reason_of


def stamp(url: str, note: bytes) -> WitnessReply:
    """Ask for a token over the text of a note. It becomes a line below the note. Raises nothing.

    The request leaves only to public addresses, and those of TOOLTRAIL_WITNESS_ALLOW.
    """
    text, _ = parse_note(note)
    try:
        query, nonce = timestamp_query(text)
        with guarded_session(settings.WITNESS_ALLOW) as session:
            response = session.post(url, data=query, headers={"Content-Type": QUERY_TYPE})
        if response.status_code != HTTPStatus.OK:
            problem = f"It answered {response.status_code}: {one_line(response.text)}"
            return WitnessReply(WitnessOutcome.SILENT, problem=problem)
        token = token_in(response.content, text, nonce)
        line = timestamp_line(urlsplit(url).hostname or "", token)
        return WitnessReply(WitnessOutcome.SIGNED, line=str(line))
    except requests.RequestException as error:
        return WitnessReply(WitnessOutcome.SILENT, problem=reason_of(error))
    except ModuleNotFoundError as error:
        return WitnessReply(WitnessOutcome.SILENT, problem=one_line(f"{error}."))
    except FormatError as error:
        return WitnessReply(WitnessOutcome.REFUSED, problem=one_line(f"No token: {error}"))
