"""What a provider says about itself, as XML that was entered or is fetched. Needs the extra."""

from dataclasses import dataclass

import requests
from django.conf import settings
from lxml.etree import LxmlError
from onelogin.saml2.idp_metadata_parser import OneLogin_Saml2_IdPMetadataParser as Parser
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

from config.http.outbound import guarded_session
from tenants.identity.saml import SamlError
from tenants.identity.saml.certificates import CERTIFICATES_MAX, read_certificates

_ROOT = "{urn:oasis:names:tc:SAML:2.0:metadata}EntityDescriptor"


@dataclass(frozen=True, slots=True)
class ProviderMetadata:
    """Where people sign in, and with which keys the provider signs."""

    entity_id: str
    sso_url: str
    """Takes requests by the HTTP-Redirect binding."""
    certificates: list[str]
    """As PEM."""


def read_metadata(xml: str | bytes) -> ProviderMetadata:
    """Read the metadata of one provider (SAML V2.0 Metadata, 2.3). Raises SamlError.

    Its own signature is not checked: it is trusted for where it came from.
    """
    sent = xml.encode() if isinstance(xml, str) else xml
    try:
        document = Xml.to_etree(sent)  # DTDs and entities are refused
        if document.tag != _ROOT:
            raise SamlError("The metadata must be of one provider: an EntityDescriptor.")
        read = Parser.parse(sent).get("idp", {})
    except (LxmlError, SamlError) as error:
        text = str(error) if isinstance(error, SamlError) else "The metadata is not XML."
        raise SamlError(text) from error
    except ValueError as error:
        raise SamlError("The metadata must not have a document type definition.") from error
    entity_id, sso = read.get("entityId"), read.get("singleSignOnService", {}).get("url")
    keys = read.get("x509certMulti", {}).get("signing") or [read.get("x509cert")]
    if not entity_id or not sso or keys[0] is None:
        raise SamlError(
            "The metadata must have an entity ID, a sign-in address with the HTTP-Redirect binding,"
            " and a certificate."
        )
    if len(keys) > CERTIFICATES_MAX:
        raise SamlError(f"The metadata has more than {CERTIFICATES_MAX} certificates.")
    certificates = [pem for key in keys for pem in read_certificates(key)]
    return ProviderMetadata(entity_id, sso, certificates)


def fetch_metadata(url: str) -> ProviderMetadata:
    """Fetch the metadata of one provider. Raises SamlError."""
    try:
        with guarded_session(settings.IDENTITY_ALLOW) as session:
            answer = session.get(url)
    except requests.RequestException as error:
        raise SamlError(f"The provider's metadata cannot be fetched: {error}") from error
    if answer.status_code != requests.codes.ok:
        raise SamlError(f"The provider's metadata cannot be fetched: HTTP {answer.status_code}.")
    return read_metadata(answer.content)
