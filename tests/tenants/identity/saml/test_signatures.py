"""SAML responses that somebody without the provider's key made or changed."""

from copy import deepcopy
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from lxml import etree

from tenants.models import IdentityProvider
from tests.support.identity.saml_provider import DS, NAMES, SAMLP, SamlProvider, keys, sign
from tests.support.identity.visits import come_back_by_saml, last_refusal, leave, members_by

HOME = reverse("home")


def refusal(row: IdentityProvider, provider: SamlProvider) -> str:
    """The reason why a response lets nobody in."""
    client = Client()
    answer = come_back_by_saml(client, row, provider.answer(leave(client, row)))
    assert answer.status_code == 302
    assert answer["Location"] == reverse("tenant_sign_in", args=[row.tenant.slug])
    assert client.get(HOME).status_code == 302
    assert members_by(row) == {}
    return last_refusal(row)


def one(document: Any, path: str) -> Any:
    (element,) = document.xpath(path, namespaces=NAMES)
    return element


def evil(element: Any, *, new_id: bool = True) -> Any:
    """A copy that names Eve, without the signature."""
    copy = deepcopy(element)
    for signature in copy.xpath(".//ds:Signature", namespaces=NAMES):
        signature.getparent().remove(signature)
    for name in copy.xpath(".//saml:NameID", namespaces=NAMES):
        name.text = "eve"
    if new_id:
        copy.set("ID", "_evil")
    return copy


def response_in_the_signature(document: Any) -> Any:
    """XSW 1: the signed response is inside the signature of another one."""
    outer = evil(document)
    signature = one(document, "ds:Signature")
    inner = deepcopy(document)
    inner.remove(one(inner, "ds:Signature"))
    moved = deepcopy(signature)
    moved.append(inner)
    outer[0].addnext(moved)
    return outer


def response_after_the_signature(document: Any) -> Any:
    """XSW 2: the signed response stands beside its signature in another one."""
    outer = evil(document)
    inner = deepcopy(document)
    signature = one(inner, "ds:Signature")
    inner.remove(signature)
    outer[0].addnext(signature)
    signature.addprevious(inner)
    return outer


def assertion_before(document: Any) -> Any:
    """XSW 3: another assertion before the signed one."""
    signed = one(document, "saml:Assertion")
    signed.addprevious(evil(signed))
    return document


def assertion_around(document: Any) -> Any:
    """XSW 4: another assertion contains the signed one."""
    signed = one(document, "saml:Assertion")
    outer = evil(signed)
    document.replace(signed, outer)
    outer.append(signed)
    return document


def signature_taken_over(document: Any) -> Any:
    """XSW 5: another assertion has the signature of the signed one."""
    signed = one(document, "saml:Assertion")
    outer, signature = evil(signed), one(signed, "ds:Signature")
    signed.remove(signature)
    outer[0].addnext(signature)
    document.replace(signed, outer)
    document.append(signed)
    return document


def assertion_in_the_signature(document: Any) -> Any:
    """XSW 6: another assertion has the signature, which contains the signed one."""
    signed = one(document, "saml:Assertion")
    outer, signature = evil(signed), one(signed, "ds:Signature")
    signed.remove(signature)
    outer[0].addnext(signature)
    document.replace(signed, outer)
    signature.append(signed)
    return document


def assertion_in_an_extension(document: Any) -> Any:
    """XSW 7: another assertion with the same id is an extension of the response."""
    signed = one(document, "saml:Assertion")
    extensions = etree.Element(f"{{{SAMLP}}}Extensions")
    extensions.append(evil(signed, new_id=False))
    one(document, "saml:Issuer").addnext(extensions)
    return document


def assertion_in_an_object(document: Any) -> Any:
    """XSW 8: another assertion has the signature, and the signed one is an object of it."""
    signed = one(document, "saml:Assertion")
    outer, signature = evil(signed, new_id=False), one(signed, "ds:Signature")
    signed.remove(signature)
    outer[0].addnext(signature)
    document.replace(signed, outer)
    etree.SubElement(signature, f"{{{DS}}}Object").append(signed)
    return document


def assertion_after(document: Any) -> Any:
    signed = one(document, "saml:Assertion")
    signed.addnext(evil(signed))
    return document


def same_id_elsewhere(document: Any) -> Any:
    signed = one(document, "saml:Assertion")
    document.set("ID", signed.get("ID"))
    return document


@pytest.mark.generated(4, kind="wrap")
@pytest.mark.parametrize("signs", [("saml:Assertion",), ("saml:Assertion", ".")], ids=len)
@pytest.mark.parametrize(
    ("wrap", "reason"),
    [
        (response_in_the_signature, "one assertion"),
        (response_after_the_signature, "one assertion"),
        (assertion_before, "one assertion"),
        (assertion_around, "one assertion"),
        (signature_taken_over, "one assertion"),
        (assertion_in_the_signature, "one assertion"),
        (assertion_in_an_extension, "same id"),
        (assertion_in_an_object, "same id"),
        (assertion_after, "one assertion"),
        (same_id_elsewhere, "same id"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_wrapped_assertion_is_refused(
    row: IdentityProvider, provider: SamlProvider, wrap: Any, reason: str, signs: tuple[str, ...]
) -> None:
    of_a_response = wrap in (response_in_the_signature, response_after_the_signature)
    provider.signs = (*signs, ".") if of_a_response and "." not in signs else signs
    provider.after = wrap
    told = refusal(row, provider)
    assert reason in told or "same id" in told, told


def test_signature_of_the_response_beside_that_of_the_assertion_is_checked(
    row: IdentityProvider, provider: SamlProvider
) -> None:
    provider.signs = ("saml:Assertion", ".")
    client = Client()
    brought = provider.answer(leave(client, row))
    assert come_back_by_saml(client, row, brought)["Location"] == HOME

    def change(document: Any) -> Any:
        document.set("IssueInstant", "2026-01-01T00:00:00Z")
        return document

    provider.after = change
    client = Client()
    come_back_by_saml(client, row, provider.answer(leave(client, row)))
    assert "Signature validation failed" in last_refusal(row)
    assert client.get(HOME).status_code == 302


def unsigned(provider: SamlProvider) -> None:
    provider.signs = ()


def only_the_response(provider: SamlProvider) -> None:
    provider.signs = (".",)


def by_another_key(provider: SamlProvider) -> None:
    provider.keys = keys("two")


def by_sha1(provider: SamlProvider) -> None:
    provider.method = "RSA_SHA1"


def digest_by_sha1(provider: SamlProvider) -> None:
    provider.digest = "SHA1"


def by_the_certificate_as_a_secret(provider: SamlProvider) -> None:
    provider.method = "HMAC_SHA256"


def another_name(provider: SamlProvider) -> None:
    def change(document: Any) -> Any:
        one(document, ".//saml:NameID").text = "eve"
        return document

    provider.after = change


def another_group(provider: SamlProvider) -> None:
    provider.sent = lambda xml: xml.replace(b">staff<", b">platform<")


def empty_reference(provider: SamlProvider) -> None:
    def change(document: Any) -> Any:
        one(document, ".//ds:Reference").set("URI", "")
        return document

    provider.after = change


def two_references(provider: SamlProvider) -> None:
    def change(document: Any) -> Any:
        reference = one(document, ".//ds:Reference")
        reference.addnext(deepcopy(reference))
        return document

    provider.after = change


def transform_that_selects(provider: SamlProvider) -> None:
    def change(document: Any) -> Any:
        transform = document.xpath(".//ds:Transform", namespaces=NAMES)[0]
        transform.set("Algorithm", "http://www.w3.org/TR/1999/REC-xpath-19991116")
        return document

    provider.after = change


def signature_inside_the_subject(provider: SamlProvider) -> None:
    def change(document: Any) -> Any:
        one(document, ".//saml:Subject").append(one(document, ".//ds:Signature"))
        return document

    provider.after = change


def second_signature(provider: SamlProvider) -> None:
    def change(document: Any) -> Any:
        sign(one(document, "saml:Assertion"), keys("two"))
        return document

    provider.after = change


def comment_in_the_name(provider: SamlProvider) -> None:
    provider.name_id = "ada.evil"
    provider.sent = lambda xml: xml.replace(b">ada.evil<", b">ada<!-- -->.evil<")


def instruction_in_the_name(provider: SamlProvider) -> None:
    provider.name_id = "ada.evil"
    provider.sent = lambda xml: xml.replace(b">ada.evil<", b">ada<?x y?>.evil<")


def section_in_the_name(provider: SamlProvider) -> None:
    provider.sent = lambda xml: xml.replace(b">ada<", b"><![CDATA[ada]]><")


def entity_of_a_file(provider: SamlProvider) -> None:
    dtd = b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    provider.sent = lambda xml: dtd + xml.replace(b">ada<", b">&x;<")


def entities_that_grow(provider: SamlProvider) -> None:
    grown = b"".join(b'<!ENTITY x%d "%s">' % (n, b"&x%d;" % (n - 1) * 9) for n in range(1, 12))
    dtd = b'<!DOCTYPE r [<!ENTITY x0 "lol">' + grown + b"]>"
    provider.sent = lambda xml: dtd + xml.replace(b">ada<", b">&x11;<")


def entities_in_another_encoding(provider: SamlProvider) -> None:
    dtd = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE r [<!ENTITY x "eve">]>'
    provider.sent = lambda xml: (dtd + xml.decode().replace(">ada<", ">&x;<")).encode("UTF-16")


def too_large(provider: SamlProvider) -> None:
    provider.sent = lambda xml: xml.replace(b">ada<", b">" + b"a" * 400_000 + b"<")


def deep(provider: SamlProvider) -> None:
    provider.sent = lambda _: b"<a>" * 20_000 + b"</a>" * 20_000


def no_xml(provider: SamlProvider) -> None:
    provider.sent = lambda _: b"\0\1\2"


def nothing(provider: SamlProvider) -> None:
    provider.sent = lambda _: b""


def only_the_assertion(provider: SamlProvider) -> None:
    provider.after = lambda document: one(document, "saml:Assertion")


def encrypted(provider: SamlProvider) -> None:
    def change(document: Any) -> Any:
        one(document, "saml:Assertion").tag = f"{{{NAMES['saml']}}}EncryptedAssertion"
        return document

    provider.after = change


@pytest.mark.generated(6, kind="lie")
@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (unsigned, "must have a signature"),
        (only_the_response, "must have a signature"),
        (by_another_key, "Signature validation failed"),
        (by_sha1, "algorithm is not accepted: http://www.w3.org/2000/09/xmldsig#rsa-sha1"),
        (digest_by_sha1, "algorithm is not accepted: http://www.w3.org/2000/09/xmldsig#sha1"),
        (by_the_certificate_as_a_secret, "algorithm is not accepted"),
        (another_name, "Signature validation failed"),
        (another_group, "Signature validation failed"),
        (empty_reference, "another element"),
        (two_references, "another element"),
        (transform_that_selects, "algorithm is not accepted"),
        (signature_inside_the_subject, "none belongs"),
        (second_signature, "must have a signature"),
        (comment_in_the_name, "a comment"),
        (instruction_in_the_name, "instruction"),
        (section_in_the_name, "section"),
        (entity_of_a_file, "document type"),
        (entities_that_grow, "document type"),
        (entities_in_another_encoding, "cannot be read"),
        (too_large, "500,000"),
        (deep, "cannot be read"),
        (no_xml, "cannot be read"),
        (nothing, "500,000"),
        (only_the_assertion, "another document"),
        (encrypted, "encrypted"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_forged_response_is_refused(
    row: IdentityProvider, provider: SamlProvider, lie: Any, reason: str
) -> None:
    lie(provider)
    assert reason in refusal(row, provider)
