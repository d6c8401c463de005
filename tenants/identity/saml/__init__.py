"""SAML 2.0 with python3-saml, stricter: what an assertion says counts only as far as it is signed.

python3-saml and xmlsec read XML, check signatures and the rules of the browser profile. Where they
are lenient, `response` is not (docs/adr/0041-identity-providers.md). They are an extra: only
`metadata` and `response` import them, and whoever needs these asks `is_installed` before.
"""

from importlib.util import find_spec

MISSING = "The extra saml is not installed on this server."


class SamlError(ValueError):
    """A document of a provider is refused. The message is for people, and is recorded."""


def is_installed() -> bool:
    """Whether the extra is installed."""
    return find_spec("onelogin") is not None
