"""A SAML provider that says whatever a test wants, with real signatures; only a test calls it."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape
from zlib import decompress

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from lxml import etree

ENTITY_ID = "https://id.acme.example/saml"
SSO_URL = "https://id.acme.example/sso?tenant=7&realm=a"
SAML = "urn:oasis:names:tc:SAML:2.0:assertion"
SAMLP = "urn:oasis:names:tc:SAML:2.0:protocol"
DS = "http://www.w3.org/2000/09/xmldsig#"
NAMES = {"saml": SAML, "samlp": SAMLP, "ds": DS}
BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"


@dataclass(frozen=True)
class Keys:
    """A private key and its certificate, as PEM."""

    private: bytes
    certificate: str


@cache
def keys(name: str = "one", bits: int = 2048) -> Keys:
    """The keys with a name; made once a process."""
    key = generate_private_key(65537, bits)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now - timedelta(days=1))  # its date does not count
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Keys(private, certificate.public_bytes(Encoding.PEM).decode())


@dataclass
class Request:
    """What a browser brings to the provider."""

    id: str
    acs_url: str
    entity_id: str
    relay_state: str
    asks_again: bool

    @classmethod
    def at(cls, address: str) -> "Request":
        """Read the address that somebody was sent to."""
        assert address.startswith(SSO_URL)
        query = parse_qs(urlsplit(address).query)
        xml = decompress(b64decode(query["SAMLRequest"][0]), -15)
        request = etree.fromstring(xml)
        assert request.get("Destination") == SSO_URL
        return cls(
            request.get("ID"),
            request.get("AssertionConsumerServiceURL"),
            request.findtext(f"{{{SAML}}}Issuer"),
            query["RelayState"][0],
            request.get("ForceAuthn") == "true",
        )


@dataclass
class SamlProvider:
    """Without a change it is an honest provider, whose assertions are signed."""

    keys: Keys = field(default_factory=keys)
    name_id: str = "ada"
    groups: tuple[str, ...] = ("staff",)
    method: str = "RSA_SHA256"
    digest: str = "SHA256"
    before: Callable[[str], str] = lambda xml: xml
    """Changes the XML of the response before it is signed."""
    signs: tuple[str, ...] = ("saml:Assertion",)
    """What it signs, in this order, as XPath."""
    after: Callable[[Any], Any] = lambda document: document
    """Changes the signed document."""
    sent: Callable[[bytes], bytes] = lambda xml: xml
    """Changes the bytes of the document."""

    def answer(self, address: str) -> dict[str, str]:
        """The form that a browser brings back from an address."""
        request = Request.at(address)
        document = etree.fromstring(self.before(self.xml(request)).encode())
        for path in self.signs:
            for element in document.xpath(path, namespaces=NAMES):
                sign(element, self.keys, self.method, self.digest)
        xml = self.sent(etree.tostring(self.after(document)))
        return {"SAMLResponse": b64encode(xml).decode(), "RelayState": request.relay_state}

    def xml(self, request: Request) -> str:
        """An honest response of now, without signatures."""
        now = datetime.now(UTC)
        start, at, end = (
            f"{now + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}" for minutes in (-1, 0, 5)
        )
        groups = "".join(
            f"<saml:AttributeValue>{escape(group)}</saml:AttributeValue>" for group in self.groups
        )
        number = f"{now.timestamp():.6f}".replace(".", "")
        return (
            f'<samlp:Response xmlns:samlp="{SAMLP}" xmlns:saml="{SAML}" ID="_r{number}"'
            f' Version="2.0" IssueInstant="{at}" Destination="{request.acs_url}"'
            f' InResponseTo="{request.id}"><saml:Issuer>{ENTITY_ID}</saml:Issuer>'
            "<samlp:Status><samlp:StatusCode"
            ' Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>'
            f'<saml:Assertion ID="_a{number}" Version="2.0" IssueInstant="{at}">'
            f"<saml:Issuer>{ENTITY_ID}</saml:Issuer><saml:Subject>"
            '<saml:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">'
            f"{self.name_id}</saml:NameID>"
            f'<saml:SubjectConfirmation Method="{BEARER}"><saml:SubjectConfirmationData'
            f' NotOnOrAfter="{end}" Recipient="{request.acs_url}" InResponseTo="{request.id}"/>'
            "</saml:SubjectConfirmation></saml:Subject>"
            f'<saml:Conditions NotBefore="{start}" NotOnOrAfter="{end}"><saml:AudienceRestriction>'
            f"<saml:Audience>{request.entity_id}</saml:Audience></saml:AudienceRestriction>"
            f'</saml:Conditions><saml:AuthnStatement AuthnInstant="{at}"><saml:AuthnContext>'
            "<saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password"
            "</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>"
            f'<saml:AttributeStatement><saml:Attribute Name="groups">{groups}</saml:Attribute>'
            '<saml:Attribute Name="urn:oid:0.9.2342.19200300.100.1.3" FriendlyName="mail">'
            "<saml:AttributeValue>ada@example.com</saml:AttributeValue></saml:Attribute>"
            "</saml:AttributeStatement></saml:Assertion></samlp:Response>"
        )


def sign(element: Any, by: Keys, method: str = "RSA_SHA256", digest: str = "SHA256") -> None:
    """Sign an element of a response as SAML does: an enveloped signature after the issuer."""
    transforms = xmlsec.Transform
    signature = xmlsec.template.create(
        element, transforms.EXCL_C14N, getattr(transforms, method), ns="ds"
    )
    element[0].addnext(signature)
    reference = xmlsec.template.add_reference(
        signature, getattr(transforms, digest), uri=f"#{element.get('ID')}"
    )
    xmlsec.template.add_transform(reference, transforms.ENVELOPED)
    xmlsec.template.add_transform(reference, transforms.EXCL_C14N)
    xmlsec.tree.add_ids(element, ["ID"])
    context = xmlsec.SignatureContext()
    if method.startswith("HMAC"):  # with what everybody knows, as if it were a secret
        context.key = xmlsec.Key.from_binary_data(xmlsec.KeyData.HMAC, by.certificate.encode())
    else:
        information = xmlsec.template.ensure_key_info(signature)
        xmlsec.template.add_x509_data(information)
        context.key = xmlsec.Key.from_memory(by.private, xmlsec.KeyFormat.PEM, None)
        context.key.load_cert_from_memory(by.certificate.encode(), xmlsec.KeyFormat.PEM)
    context.sign(signature)


def provider_metadata(by: Keys, entity_id: str = ENTITY_ID, sso_url: str = SSO_URL) -> str:
    """The metadata of a provider."""
    certificate = "".join(by.certificate.splitlines()[1:-1])
    return (
        f'<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="{DS}"'
        f' entityID="{entity_id}"><md:IDPSSODescriptor protocolSupportEnumeration="{SAMLP}">'
        '<md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>'
        f"{certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
        '<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"'
        f' Location="{escape(sso_url)}"/></md:IDPSSODescriptor></md:EntityDescriptor>'
    )
