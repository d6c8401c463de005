"""Certificates of a provider's signatures. Only their keys count: dates and issuers do not.

SAML providers sign with certificates of their own making, and often with expired ones (SAML V2.0
Metadata Interoperability Profile, 2.6.1). Who enters a certificate trusts its key.
"""

import binascii
from base64 import b64decode
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from tenants.identity.saml import SamlError

CERTIFICATES_MAX = 10
_RSA_BITS_MIN = 2_048
_UNREADABLE = "Enter certificates as PEM, or one as Base64."


@dataclass(frozen=True, slots=True)
class Certificate:
    """What people compare of a certificate."""

    fingerprint: str
    """SHA-256 of the certificate, as hexadecimal digits in pairs."""
    until: datetime
    """When it expires. It is used all the same."""


def read_certificates(text: str) -> list[str]:
    """The certificates of a text, each as PEM. Raises SamlError."""
    try:
        if "-----BEGIN" in text:
            read = x509.load_pem_x509_certificates(text.encode())
        else:
            read = [x509.load_der_x509_certificate(b64decode("".join(text.split()), validate=True))]
        keys = [one.public_key() for one in read]
    except (ValueError, binascii.Error, UnsupportedAlgorithm) as error:
        raise SamlError(_UNREADABLE) from error
    if len(read) > CERTIFICATES_MAX:
        raise SamlError(f"Enter at most {CERTIFICATES_MAX} certificates.")
    for key in keys:
        is_long_enough = isinstance(key, RSAPublicKey) and key.key_size >= _RSA_BITS_MIN
        if not is_long_enough and not isinstance(key, EllipticCurvePublicKey):
            raise SamlError(
                f"A certificate needs an RSA key of {_RSA_BITS_MIN} bits, or an EC key."
            )
    return [one.public_bytes(Encoding.PEM).decode().strip() for one in read]


def described(pem: str) -> Certificate:
    """What people compare of a certificate that `read_certificates` returned."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    return Certificate(
        certificate.fingerprint(SHA256()).hex(":").upper(), certificate.not_valid_after_utc
    )
