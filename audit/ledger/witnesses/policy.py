"""Which witnesses and which time authority a tenant has, and how many witnesses must sign."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from tooltrail.ledger import FormatError
from tooltrail.ledger.cosignature import WitnessKey

from config.http.given_urls import checked_url

WITNESSES_MAX = 10
URL_MAX = 500


class WitnessError(ValueError):
    """Such a policy cannot be. The message is for people; `place` is the witness's position."""

    def __init__(self, message: str, place: int | None = None) -> None:
        super().__init__(message)
        self.place = place


class AuthorityError(WitnessError):
    """Such a time authority cannot be."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness: the prefix of its URL, and its public key."""

    url: str
    key: WitnessKey

    @property
    def name(self) -> str:
        """The name in its key."""
        return self.key.name


@dataclass(frozen=True, slots=True)
class WitnessPolicy:
    """A tenant's witnesses, how many of them must sign a checkpoint, and its time authority."""

    witnesses: tuple[Witness, ...] = ()
    needed: int = 0
    timestamp_url: str = ""
    """Of a time authority (RFC 3161); empty: none."""

    def stored(self) -> dict[str, Any]:
        """The policy as JSON values, as it is stored and in files of configuration."""
        return {
            "needed": self.needed,
            "witnesses": [{"url": each.url, "key": str(each.key)} for each in self.witnesses],
            "timestamp_url": self.timestamp_url,
        }


def read_policy(
    needed: int, given: Sequence[Mapping[str, str]], timestamp_url: str = ""
) -> WitnessPolicy:
    """Read a policy: of each witness `url` and `key`, a vkey. Raises WitnessError."""
    if len(given) > WITNESSES_MAX:
        raise WitnessError(f"A tenant can have at most {WITNESSES_MAX} witnesses.")
    witnesses: list[Witness] = []
    for place, each in enumerate(given):
        try:
            witness = Witness(_checked(each["url"]), WitnessKey.parse(each["key"]))
        except (FormatError, ValueError) as error:
            raise WitnessError(f"Witness {place + 1}: {_sentence(error)}", place) from error
        if any(other.key.public == witness.key.public for other in witnesses):
            raise WitnessError(f"Witness {place + 1}: another witness has the same key.", place)
        if any(other.name == witness.name for other in witnesses):
            raise WitnessError(f"Witness {place + 1}: another witness has the same name.", place)
        witnesses.append(witness)
    if not (1 if witnesses else 0) <= needed <= len(witnesses):
        raise WitnessError(f"{needed} of {len(witnesses)} witnesses cannot be required.")
    return WitnessPolicy(tuple(witnesses), needed, _authority(timestamp_url))


def can_ask_authorities() -> bool:
    """Whether the extra for time authorities is installed."""
    return find_spec("rfc3161_client") is not None


def _authority(url: str) -> str:
    """The URL of a time authority, or ''. Raises AuthorityError."""
    try:
        return _checked(url) if url else ""
    except ValueError as error:
        raise AuthorityError(f"Time authority: {_sentence(error)}") from error


def _checked(url: str) -> str:
    """The prefix of a witness's URL. Raises ValueError."""
    if len(url) > URL_MAX or not url.isascii():
        raise ValueError(f"The URL must have at most {URL_MAX} characters, encoded.")
    checked_url(url, may_have_query=False)
    return url.rstrip("/")


def _sentence(error: Exception) -> str:
    return f"{str(error).removesuffix('.')}."
