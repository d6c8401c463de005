"""How bytes and numbers are written in the lines of the C2SP formats: in exactly one way each.

Other spellings of the same value are rejected. So whatever was signed or hashed can be written
again byte by byte from the values read.
"""

import re
from base64 import b64decode, b64encode

from tooltrail.ledger.errors import FormatError

HASH_LENGTH = 32
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")


def to_base64(data: bytes) -> str:
    """Encode as padded base64 (RFC 4648, section 4)."""
    return b64encode(data).decode()


def from_base64(text: str, what: str, length: int | None = None) -> bytes:
    """Decode base64 of `length` bytes, if given. Raises FormatError; its message names `what`."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        raise FormatError(f"{what} is not base64") from None
    if to_base64(data) != text:
        raise FormatError(f"{what} is not canonical base64")
    if length is not None and len(data) != length:
        raise FormatError(f"{what} has {len(data)} bytes, not {length}")
    return data


def from_decimal(text: str, what: str) -> int:
    """Read a number of up to 63 bits. Raises FormatError; its message names `what`."""
    if not _DECIMAL.fullmatch(text) or (number := int(text)) >= 1 << 63:
        raise FormatError(f"{what} is not a decimal number below 2^63 without leading zeroes")
    return number


def shown(text: str) -> str:
    """Foreign text in a form that is safe in a message: quoted, escaped, cut to 80 characters."""
    return ascii(text if len(text) <= 80 else f"{text[:79]}…")
