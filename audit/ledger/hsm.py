"""Private keys in a PKCS#11 token, such as a hardware security module: they never leave it.

`TOOLTRAIL_LEDGER_PKCS11` names the token by a URI (RFC 7512):

    pkcs11:token=LABEL?module-path=/path/of/the/library.so&pin-source=file:/path/of/the/pin

Only Ed25519 (CKM_EDDSA): a token without it is refused, and no other algorithm takes its place.
Needs the extra `pkcs11`.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from django.conf import settings
from tooltrail.ledger import SignatureError, VerifierKey
from tooltrail.ledger.keys import check_signature

from config import private_files

if TYPE_CHECKING:
    import pkcs11

_ED25519 = "1.3.101.112"
_PUBLIC_LENGTH = 32
_ID_LENGTH = 16
_LABEL = "tooltrail ledger"
# A process is logged in to a token with all its sessions or with none.
_ALONE = threading.Lock()


class TokenError(Exception):
    """The token cannot be reached or has no such key. The message is one line for people."""


@dataclass(frozen=True, slots=True)
class TokenKey:
    """A key pair in the token: the id of both objects there, and the public key."""

    id: bytes
    public: bytes


@dataclass(frozen=True, slots=True)
class TokenSigner:
    """Signs as `tooltrail.ledger.SigningKey` does, in the token."""

    name: str
    key: TokenKey

    @property
    def verifier(self) -> VerifierKey:
        """The matching public key."""
        return VerifierKey(self.name, self.key.public)

    def sign(self, message: bytes) -> bytes:
        """Sign a message; returns 64 bytes. Raises TokenError, also if the signature is wrong."""
        with _session() as session:
            import pkcs11
            from pkcs11.types import SignMixin

            wanted = {
                pkcs11.Attribute.CLASS: pkcs11.ObjectClass.PRIVATE_KEY,
                pkcs11.Attribute.ID: self.key.id,
            }
            private_keys = list(session.get_objects(wanted))
            if len(private_keys) != 1:
                raise TokenError(
                    f"the token has {len(private_keys)} private keys {self.key.id.hex()}"
                )
            (private,) = private_keys
            assert isinstance(private, SignMixin)
            signature = private.sign(message, mechanism=pkcs11.Mechanism.EDDSA)
        try:
            check_signature(self.name, self.key.public, message, signature)
        except SignatureError as error:  # a hash of the message was signed, or by another key
            raise TokenError("the token does not sign as Ed25519 does") from error
        return signature


def is_used() -> bool:
    """Whether new keys are made in a token."""
    return bool(settings.LEDGER_PKCS11)


def generate() -> TokenKey:
    """Make a key pair that cannot leave the token. Raises TokenError."""
    key_id = os.urandom(_ID_LENGTH)
    with _session(is_writing=True) as session:
        import pkcs11
        from pkcs11.util.ec import encode_named_curve_parameters

        parameters = session.create_domain_parameters(
            pkcs11.KeyType.EC_EDWARDS,
            {pkcs11.Attribute.EC_PARAMS: encode_named_curve_parameters(_ED25519)},
            local=True,
        )
        public, _ = parameters.generate_keypair(
            id=key_id,
            label=_LABEL,
            store=True,
            mechanism=pkcs11.Mechanism.EC_EDWARDS_KEY_PAIR_GEN,
            private_template={
                pkcs11.Attribute.EXTRACTABLE: False,
                pkcs11.Attribute.SENSITIVE: True,
            },
        )
        point = public[pkcs11.Attribute.EC_POINT]
    # DER of an octet string, or the bare point.
    key = TokenKey(key_id, bytes(point)[-_PUBLIC_LENGTH:])
    TokenSigner("new", key).sign(b"new\n")
    return key


@contextmanager
def _session(*, is_writing: bool = False) -> Iterator["pkcs11.Session"]:
    """Log in to the token until the block ends. Raises TokenError for every error of it."""
    label, module, pin = _address()
    try:
        import pkcs11
    except ModuleNotFoundError as missing:
        raise TokenError("keys in a PKCS#11 token need the extra `pkcs11`") from missing
    with _ALONE:
        try:
            token = pkcs11.lib(module).get_token(token_label=label)
            with token.open(rw=is_writing, user_pin=pin) as session:
                yield session
        except (pkcs11.exceptions.PKCS11Error, RuntimeError) as error:
            reason = f"{type(error).__name__} {error}".strip()
            raise TokenError(f"PKCS#11 token {label!r}: {reason}") from error


def _address() -> tuple[str, str, str]:
    """Label of the token, path of the library, and PIN. Raises TokenError."""
    uri: str = settings.LEDGER_PKCS11
    scheme, _, rest = uri.partition(":")
    path, _, query = rest.partition("?")
    parts = [each.partition("=") for each in (*path.split(";"), *query.split("&")) if each]
    values = {name: unquote(value) for name, _, value in parts}
    if scheme != "pkcs11" or values.keys() != {"token", "module-path", "pin-source"}:
        raise TokenError(
            "TOOLTRAIL_LEDGER_PKCS11 must be pkcs11:token=LABEL?module-path=PATH&pin-source=PATH"
        )
    source = Path(values["pin-source"].removeprefix("file:"))
    try:
        pin = private_files.read(source)
    except private_files.PrivateFileError as error:
        raise TokenError(f"the PIN: {error}") from error
    if pin is None:
        raise TokenError(f"the PIN: no file {source}")
    return values["token"], values["module-path"], pin.decode(errors="replace").strip()
