"""Access tokens of OpenID providers: JWTs of RFC 9068, or of Entra ID, Okta and Keycloak.

No database and no requests. Nothing here says what a person may do (`tenants.identity.resource`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from tenants.identity.published import ALGORITHMS, LEEWAY_S, UNREADABLE
from tenants.identity.wanted import SUBJECT_MAX, subject_claim
from tenants.models import IdentityProvider

TOKEN_MAX: Final = 16_000
_TYPED: Final = {"at+jwt", "application/at+jwt"}
_UNTYPED: Final = {"", "jwt"}
"""Entra ID and Keycloak say no more than that, Okta says nothing."""
_OF_ID_TOKENS: Final = {"nonce", "at_hash", "c_hash", "s_hash"}


class TokenError(Exception):
    """A token is not accepted. The message is for the person who sent it."""


@dataclass(frozen=True, slots=True)
class Unverified:
    """What a token says before anybody has looked at its signature."""

    issuer: str
    key_id: str | None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What a token proves."""

    subject: str
    """The provider's name for the person."""
    scopes: frozenset[str]
    """Without the provider's prefix."""
    signed_in_at: int
    """When the person signed in at the provider, in Unix seconds; if it does not say: of issue."""
    claims: Mapping[str, Any]


def read_unverified(token: str) -> Unverified:
    """The issuer and the key that a token names. Raises TokenError."""
    if len(token) > TOKEN_MAX:
        raise TokenError(f"The access token is longer than {TOKEN_MAX:,} characters.")
    try:
        header = jwt.get_unverified_header(token)
        claims = jwt.decode(token, options={"verify_signature": False})
        issuer, key_id = claims["iss"], header.get("kid")
    except (jwt.PyJWTError, RecursionError, *UNREADABLE) as error:
        raise TokenError("Send an access token that is a JWT with an issuer.") from error
    if not isinstance(issuer, str):
        raise TokenError("The access token's issuer is no text.")
    if header.get("alg") not in ALGORITHMS:
        raise TokenError("The access token must be signed with a public key.")
    return Unverified(issuer, key_id)


def verified(token: str, key: jwt.PyJWK, provider: IdentityProvider, audience: str) -> AccessToken:
    """What a token proves if its signature is by `key`. Raises TokenError."""
    settings = provider.settings
    try:
        whole = jwt.decode_complete(
            token,
            key,
            algorithms=ALGORITHMS,
            issuer=settings["issuer"],
            audience=audience,
            leeway=LEEWAY_S,
            options={"require": ["iss", "aud", "exp", "iat"]},
        )
    except jwt.InvalidAudienceError as error:
        raise TokenError(f"The access token is not for the audience {audience}.") from error
    except jwt.PyJWTError as error:
        raise TokenError(f"The access token is invalid: {error}.") from error
    except UNREADABLE as error:
        raise TokenError("The access token cannot be read.") from error
    claims: dict[str, Any] = whole["payload"]
    _check_kind(whole["header"], claims)
    return AccessToken(
        subject=_subject(claims, settings.get("mcp_person_claim") or subject_claim(provider)),
        scopes=_scopes(claims, settings.get("mcp_scope_prefix", "")),
        signed_in_at=_signed_in_at(claims),
        claims=claims,
    )


def _check_kind(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Raise TokenError for JWTs that are made for something else (RFC 8725, 3.11 and 3.12)."""
    kind = str(header.get("typ") or "").lower()
    use = claims.get("typ", "Bearer")  # Keycloak: ID, Refresh, Logout and others
    if kind not in _TYPED and (
        kind not in _UNTYPED or use != "Bearer" or _OF_ID_TOKENS & claims.keys()
    ):
        raise TokenError("This JWT is no access token.")
    if "cnf" in claims:
        raise TokenError("The access token needs a proof of its key, which is not supported.")


def _subject(claims: Mapping[str, Any], name: str) -> str:
    subject = claims.get(name)
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_MAX or "\0" in subject:
        raise TokenError(f"The access token has no usable text as {name}, which names the person.")
    return subject


def _scopes(claims: Mapping[str, Any], prefix: str) -> frozenset[str]:
    """`scope` as one text (RFC 9068); `scp` of Entra ID as a text, of Okta as a list."""
    given = claims.get("scope", claims.get("scp", ""))
    names = given.split() if isinstance(given, str) else given
    if not isinstance(names, list):
        return frozenset()
    return frozenset(name.removeprefix(prefix) for name in names if isinstance(name, str))


def _signed_in_at(claims: Mapping[str, Any]) -> int:
    given = claims.get("auth_time", claims["iat"])
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise TokenError("The access token's auth_time is no number.")
    return int(given)
