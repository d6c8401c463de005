"""Requests to a provider, and the check of its responses. Needs the extra.

python3-saml checks the schema, status, issuers, conditions and the signature. It lets pass some
responses that this module refuses: without InResponseTo, Recipient or audience, with an address
that only begins like ours, with transforms and algorithms beyond those of SAML, and with comments.
A response that passes has one assertion, and its signature covers just this one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from onelogin.saml2.authn_request import OneLogin_Saml2_Authn_Request as AuthnRequest
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Constants
from onelogin.saml2.response import OneLogin_Saml2_Response as Response
from onelogin.saml2.settings import OneLogin_Saml2_Settings as Settings
from onelogin.saml2.utils import OneLogin_Saml2_Utils as Utils
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

from tenants.identity.saml import SamlError
from tenants.identity.saml.metadata import ProviderMetadata

LEEWAY_S = 60
"""How far the provider's clock may be off."""
RESPONSE_MAX = 500_000
"""Characters of a response, as Base64."""
_DSIG, _DSIG_MORE = "http://www.w3.org/2000/09/xmldsig#", "http://www.w3.org/2001/04/xmldsig-more#"
_C14N = "http://www.w3.org/2001/10/xml-exc-c14n#"
_SIGNATURES = {
    f"{_DSIG_MORE}{key}-sha{bits}" for key in ("rsa", "ecdsa") for bits in (256, 384, 512)
}
_DIGESTS = {
    "http://www.w3.org/2001/04/xmlenc#sha256",
    f"{_DSIG_MORE}sha384",
    "http://www.w3.org/2001/04/xmlenc#sha512",
}
_TRANSFORMS = {f"{_DSIG}enveloped-signature", _C14N}  # SAML V2.0 Core, 5.4.4
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
_ENCRYPTED = re.compile(r"<([\w.-]+:)?EncryptedAssertion\b")
_IDS = ("ID", "Id", "id", "{http://www.w3.org/XML/1998/namespace}id")


@dataclass(frozen=True, slots=True)
class Party:
    """Who this server is for a provider."""

    entity_id: str
    acs_url: str
    """Where responses are sent to (assertion consumer service)."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a provider signed about a person."""

    id: str
    usable_until: int
    """In Unix seconds, with the leeway: until then it must not be used again."""
    name_id: str
    is_transient: bool
    """Whether the name is another one at each sign-in."""
    attributes: dict[str, list[str]]
    """By name and by friendly name."""
    authenticated_at: int
    """When the person proved who it is, in Unix seconds."""


def request_address(
    party: Party, provider: ProviderMetadata, *, asks_again: bool = False
) -> tuple[str, str]:
    """The address that asks a provider for a sign-in, and the id of the request.

    The id is the RelayState, too. With `asks_again` an open session there is not enough.
    """
    # python3-saml writes addresses into the XML as they are.
    request = AuthnRequest(
        _settings(party, provider, escape(provider.sso_url, {'"': "&quot;"})),
        force_authn=asks_again,
        set_nameid_policy=False,
    )
    query = {"SAMLRequest": request.get_request(), "RelayState": request.get_id()}
    return str(Utils.redirect(provider.sso_url, query)), str(request.get_id())


def own_metadata(party: Party) -> bytes:
    """This server's metadata for a provider (SAML V2.0 Metadata, 2.4.4)."""
    # Without an end, as it changes only with the address of this server.
    metadata: bytes | str = _settings(party).get_sp_metadata()
    return metadata if isinstance(metadata, bytes) else metadata.encode()


def verified(
    sent: str, party: Party, provider: ProviderMetadata, request_id: str, now: datetime
) -> Assertion:
    """The assertion of a response (Base64) to the request with this id. Raises SamlError."""
    response = _read(sent, _settings(party, provider))
    document = response.document
    assertion = _the_assertion(document)
    for signature in _all(document, "//ds:Signature"):
        _check_signature(signature)
    address = urlsplit(party.acs_url)
    request_data = {
        "https": "on" if address.scheme == "https" else "off",
        "http_host": address.netloc,
        "script_name": "",
        "path_info": address.path,
    }
    try:
        response.is_valid(request_data, request_id, raise_exceptions=True)
        _check_purpose(document, assertion, party, request_id)
        until = _check_times(assertion, now)
        return _assertion(response, assertion, until)
    except SamlError:
        raise
    except Exception as error:  # the library raises its own, lxml's, xmlsec's and plain ones
        raise SamlError(f"The response is refused: {_line(error)}") from error


def _read(sent: str, settings: Settings) -> Response:
    if not 0 < len(sent) <= RESPONSE_MAX or not _BASE64.fullmatch(sent):
        raise SamlError(f"The response is no Base64 of at most {RESPONSE_MAX:,} characters.")
    try:
        plain = Utils.b64decode(sent).decode("utf-8-sig")
        # A comment ends a text for some readers. SAML needs no definitions of types or entities.
        if "<!" in plain or "<?" in plain.removeprefix("<?xml"):
            raise SamlError(
                "The response has a document type definition, a comment, a section or an"
                " instruction."
            )
        if _ENCRYPTED.search(plain):
            raise SamlError("The assertion is encrypted. Turn encryption off at the provider.")
        response = Response(settings, sent)
    except SamlError:
        raise
    except Exception as error:  # as above
        raise SamlError(f"The response cannot be read: {_line(error)}") from error
    if response.document.tag != f"{{{Constants.NS_SAMLP}}}Response":
        raise SamlError("The response is another document.")
    try:
        response.check_status()
    except Exception as error:  # as above
        raise SamlError(f"The provider refuses: {_line(error)}") from error
    return response


def _the_assertion(document: Any) -> Any:
    """The only assertion, which is signed. No other element has the id of another one."""
    ids = [
        each.get(name) for each in document.iter() for name in _IDS if each.get(name) is not None
    ]
    if len(ids) != len(set(ids)):
        raise SamlError("Two elements of the response have the same id.")
    everywhere = _all(document, "//saml:Assertion")
    if len(everywhere) != 1 or everywhere[0].getparent() is not document:
        raise SamlError("The response must have one assertion, at its top level.")
    assertion = everywhere[0]
    parents = [each.getparent() for each in _all(document, "//ds:Signature")]
    if any(parent is not document and parent is not assertion for parent in parents):
        raise SamlError("A signature is at a place where none belongs.")
    if sum(parent is assertion for parent in parents) != 1:
        raise SamlError("The assertion itself must have a signature.")
    return assertion


def _check_signature(signature: Any) -> None:
    references = _all(signature, "ds:SignedInfo/ds:Reference")
    of = f"#{signature.getparent().get('ID')}"
    if len(references) != 1 or references[0].get("URI") != of or _all(signature, "ds:Object"):
        raise SamlError("A signature covers another element than the one that has it.")
    for path, accepted in (
        ("ds:SignedInfo/ds:SignatureMethod", _SIGNATURES),
        ("ds:SignedInfo/ds:CanonicalizationMethod", {_C14N}),
        (".//ds:DigestMethod", _DIGESTS),
        (".//ds:Transform", _TRANSFORMS),
    ):
        for each in _all(signature, path):
            if each.get("Algorithm") not in accepted:
                raise SamlError(f"This algorithm is not accepted: {_line(each.get('Algorithm'))}")


def _check_purpose(document: Any, assertion: Any, party: Party, request_id: str) -> None:
    if document.get("Destination") not in (None, party.acs_url):
        raise SamlError("The response is for another address (Destination).")
    if document.get("InResponseTo") != request_id:
        raise SamlError("The response answers no request of this sign-in (InResponseTo).")
    restrictions = _all(assertion, "saml:Conditions/saml:AudienceRestriction")
    if not restrictions:
        raise SamlError("The assertion names no audience.")
    for restriction in restrictions:
        if party.entity_id not in _texts(_all(restriction, "saml:Audience")):
            raise SamlError("The assertion is for another audience.")
    data = "saml:Subject/saml:SubjectConfirmation[@Method=$bearer]/saml:SubjectConfirmationData"
    confirmations = assertion.xpath(data, namespaces=Constants.NSMAP, bearer=Constants.CM_BEARER)
    if not any(
        each.get("Recipient") == party.acs_url
        and each.get("InResponseTo") == request_id
        and each.get("NotOnOrAfter") is not None
        for each in confirmations
    ):
        raise SamlError("The assertion confirms nobody to this address for this sign-in.")
    if len(confirmations) != 1:
        raise SamlError("The assertion confirms its subject more than once.")


def _check_times(assertion: Any, now: datetime) -> int:
    """Until when the assertion is usable. python3-saml lets clocks be off five minutes."""
    at = now.timestamp()
    starts = _instants(assertion, "saml:Conditions/@NotBefore")
    ends = _instants(
        assertion,
        "saml:Conditions/@NotOnOrAfter",
        "saml:Subject/saml:SubjectConfirmation/saml:SubjectConfirmationData/@NotOnOrAfter",
    )
    made = _instants(assertion, "@IssueInstant", "saml:AuthnStatement/@AuthnInstant")
    if any(start > at + LEEWAY_S for start in starts + made):
        raise SamlError("The assertion is not valid yet.")
    if any(end <= at - LEEWAY_S for end in ends):
        raise SamlError("The assertion has expired.")
    return max(ends) + LEEWAY_S


def _assertion(response: Response, assertion: Any, until: int) -> Assertion:
    name = response.get_nameid_data()
    attributes: dict[str, list[str]] = {}
    for given in (response.get_friendlyname_attributes(), response.get_attributes()):
        for key, values in given.items():
            attributes[key] = [value for value in values if isinstance(value, str)]
    return Assertion(
        id=assertion.get("ID"),
        usable_until=until,
        name_id=name["Value"],
        is_transient=name.get("Format") == Constants.NAMEID_TRANSIENT,
        attributes=attributes,
        authenticated_at=_instants(assertion, "saml:AuthnStatement/@AuthnInstant")[0],
    )


def _settings(
    party: Party, provider: ProviderMetadata | None = None, sso_url: str | None = None
) -> Settings:
    """The settings of python3-saml. Raises SamlError."""
    given: dict[str, Any] = {
        "strict": True,
        "debug": False,
        "sp": {
            "entityId": party.entity_id,
            "assertionConsumerService": {
                "url": party.acs_url,
                "binding": Constants.BINDING_HTTP_POST,
            },
            "NameIDFormat": Constants.NAMEID_UNSPECIFIED,
        },
        "security": {
            "allowSingleLabelDomains": True,
            "allowRepeatAttributeName": True,
            "rejectDeprecatedAlgorithm": True,
            "requestedAuthnContext": False,
            "wantAssertionsSigned": True,
            "wantAttributeStatement": False,
            "metadataValidUntil": "",
            "metadataCacheDuration": "",
        },
    }
    if provider is not None:
        given["idp"] = {
            "entityId": provider.entity_id,
            "singleSignOnService": {"url": sso_url or provider.sso_url},
            "x509certMulti": {"signing": list(provider.certificates)},
        }
    try:
        return Settings(settings=given, sp_validation_only=provider is None)
    except Exception as error:  # the library raises its own and plain ones
        raise SamlError(f"The provider's settings cannot be used: {_line(error)}") from error


def _all(element: Any, path: str) -> list[Any]:
    elements: list[Any] = element.xpath(path, namespaces=Constants.NSMAP)
    return elements


def _texts(elements: Iterable[Any]) -> list[str]:
    return [Xml.element_text(each) for each in elements]


def _instants(element: Any, *paths: str) -> list[int]:
    texts = [text for path in paths for text in _all(element, path)]
    return [int(Utils.parse_SAML_to_time(text)) for text in texts]


def _line(message: object) -> str:
    """What a library or a provider says, as one line for the record."""
    text = "".join(each if each.isprintable() else " " for each in str(message))
    return " ".join(text.split())[:300]
