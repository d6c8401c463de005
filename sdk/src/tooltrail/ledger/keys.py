"""Ed25519 keys as named in signed notes: https://c2sp.org/signed-note, "Verifier keys".

    key id = SHA256(name ‖ "\\n" ‖ 0x01 ‖ public key)[:4]
    vkey   = name + "+" + hex(key id) + "+" + base64(0x01 ‖ public key)

Signing and verifying need `cryptography`, the extra `verify`; nothing else does.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from tooltrail.ledger.errors import FormatError, SignatureError
from tooltrail.ledger.lines import from_base64, shown, to_base64

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519

KEY_LENGTH = 32
ED25519 = b"\x01"


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A public key and its owner's name: the 32 bytes of RFC 8032. `str()` gives its vkey.

    Raises FormatError if the name or the length is invalid.
    """

    kind: ClassVar[bytes]
    """The byte before the key in a vkey."""
    called: ClassVar[str]
    """The kind, in messages."""
    name: str
    public: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        check_public(self.public)

    @property
    def key_id(self) -> bytes:
        """Four bytes to find the key by. Not a strong hash: others can make keys with the same."""
        return key_id_of(self.name, self.kind, self.public)

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{to_base64(self.kind + self.public)}"

    @classmethod
    def parse(cls, vkey: str) -> Self:
        """Read a vkey. Raises FormatError with what is wrong."""
        return cls(*read_vkey(vkey, cls.kind, cls.called))


@dataclass(frozen=True, slots=True)
class VerifierKey(NamedKey):
    """The public key of a signer."""

    kind: ClassVar[bytes] = ED25519
    called: ClassVar[str] = "an Ed25519 key"

    def verify(self, text: str, signature: bytes) -> None:
        """Check a signature. Raises SignatureError, or ImportError without the extra `verify`."""
        check_signature(self.name, self.public, text.encode(), signature)


class Signer(Protocol):
    """What signs: a key that is here (`SigningKey`), or one that is kept elsewhere."""

    @property
    def name(self) -> str:
        """The signer's name."""

    @property
    def verifier(self) -> VerifierKey:
        """The matching public key."""

    def sign(self, message: bytes) -> bytes:
        """Sign a message; returns the 64 bytes of RFC 8032."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key: the signer's name and the 32 bytes of RFC 8032, which `repr` leaves out.

    Raises FormatError if the name or the length is invalid.
    """

    name: str
    private: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.private) != KEY_LENGTH:
            raise FormatError(f"a private key has {KEY_LENGTH} bytes, not {len(self.private)}")

    @property
    def verifier(self) -> VerifierKey:
        """The matching public key. Raises ImportError without the extra `verify`."""
        return VerifierKey(self.name, self._key().public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Sign a message; returns 64 bytes. Raises ImportError without the extra `verify`."""
        return self._key().sign(message)

    def _key(self) -> "ed25519.Ed25519PrivateKey":
        key: ed25519.Ed25519PrivateKey = _ed25519().Ed25519PrivateKey.from_private_bytes(
            self.private
        )
        return key


def key_id_of(name: str, algorithm: bytes, public: bytes) -> bytes:
    """The four bytes by which notes name a key of this name and algorithm."""
    return sha256(name.encode() + b"\n" + algorithm + public).digest()[:4]


def read_vkey(vkey: str, algorithm: bytes, kind: str) -> tuple[str, bytes]:
    """The name and the public key in a vkey. Raises FormatError unless it is of `algorithm`."""
    # The base64 may contain "+", so only the first two are separators.
    parts = vkey.split("+", 2)
    if len(parts) != 3:
        raise FormatError(f"a public key must have the form name+id+key, not {shown(vkey)}")
    name, key_id, encoded = parts
    material = from_base64(encoded, "the key material of a public key")
    if material[:1] != algorithm:
        raise FormatError(f"the public key of {shown(name)} is not {kind}")
    public = material[1:]
    check_name(name)
    check_public(public)
    if (right := key_id_of(name, algorithm, public).hex()) != key_id:
        raise FormatError(
            f"the public key of {shown(name)} has the id {right}, "
            f"not {shown(key_id)}: a part of it was changed"
        )
    return name, public


def check_public(public: bytes) -> None:
    """Raise FormatError unless these can be the bytes of a public key."""
    if len(public) != KEY_LENGTH:
        raise FormatError(f"a public key has {KEY_LENGTH} bytes, not {len(public)}")


def check_signature(name: str, public: bytes, message: bytes, signature: bytes) -> None:
    """Raise SignatureError if it is not this key's, or ImportError without the extra `verify`."""
    ed25519 = _ed25519()
    from cryptography.exceptions import InvalidSignature

    try:
        ed25519.Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise SignatureError(f"the signature of {shown(name)} is wrong") from None


def check_name(name: str) -> None:
    """Raise FormatError unless the text can be the name of a key."""
    refused = any(char == "+" or char.isspace() or char < " " for char in name)
    if not name or refused or any("\ud800" <= char <= "\udfff" for char in name):
        raise FormatError(f"the name of a key must be text without spaces and +, not {shown(name)}")


def _ed25519() -> ModuleType:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "signatures need the extra `verify`: pip install 'tooltrail[verify]'",
            name=missing.name,
        ) from missing
    return ed25519
