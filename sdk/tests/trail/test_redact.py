"""Which texts count as secrets, and that the fast check misses none of them."""

import json
import string
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tooltrail.capture import Capture, encode_json
from tooltrail.redact import SECRET_ENDINGS, SECRET_WORDS, Note, Redactor
from tooltrail.redact_text import MARK, TEXTS_DEEP_MAX
from tooltrail.testing import MemoryTrail

REDACTOR = Redactor()
TOKEN = "tt_0198c0de-0000-7000-8000-000000000001_key1_secret_crc"


def encode(
    value: Any, redactor: Redactor = REDACTOR, path: str = "$.args"
) -> tuple[Any, list[Note]]:
    """As an event would carry it, with the notes."""
    notes: list[Note] = []
    text = Capture("full", redactor, 1_000_000).encode(value, path, notes)
    return json.loads(text), notes


@pytest.mark.parametrize(
    "name",
    [
        "password", "Password", "dbPassword", "DB_PASSWORD", "old-password-2", "passWord",
        "user.password", "apiKey", "api_key", "x-api-key", "X-API-KEY", "APIKey", "apikey",
        "authorization", "access_token", "refreshToken", "clientSecret", "AWS_SECRET_ACCESS_KEY",
        "private_key", "credentials", "Set-Cookie", "auth", "jwt", "passwords", "API_KEYS",
    ],
)  # fmt: skip  # by line as they belong together
def test_members_with_secret_names_are_redacted(name: str) -> None:
    value = {"a": [{name: {"deep": 1}, "kept": 2}]}
    cleaned, notes = encode(value)
    assert cleaned == {"a": [{name: MARK, "kept": 2}]}
    assert notes == [{"path": f"$.args.a[0].{name}", "reason": "name"}]
    assert value == {"a": [{name: {"deep": 1}, "kept": 2}]}, "the host's own object stays"


@pytest.mark.parametrize(
    "name",
    ["token_usage", "max_tokens", "tokens", "author", "secretary", "tokenizer", "key", "passage"],
)
def test_members_with_harmless_names_are_kept(name: str) -> None:
    assert encode({name: 1}) == ({name: 1}, [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "private key"),
        ("see:\neyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.x", "json web token"),
        ("with Authorization: Bearer abcdefghij0123456789", "bearer token"),
        ("bearer\tabcdefghij0123456789", "bearer token"),
        ("sent BeaRER\u00a0abcdefghij0123456789", "bearer token"),
        ("BEARER\x0babcdefghij0123456789", "bearer token"),
        ("key\nAKIAIOSFODNN7EXAMPLE", "access key"),
        ("ghp_" + "a" * 36, "access key"),
        ("sk-proj-" + "a" * 40, "access key"),
        (f'curl -H "x: {TOKEN}"', "access key"),
    ],
)
def test_texts_with_credentials_are_redacted(text: str, reason: str) -> None:
    cleaned, notes = encode({"q": ["fine", text]})
    assert cleaned == {"q": ["fine", MARK]}
    assert notes == [{"path": "$.args.q[1]", "reason": reason}]


SEPARATORS = st.sampled_from(["", "_", "-", " ", ".", "__", "\n", '"', "\\", "é", "\x01", "/"])
CASES = st.sampled_from([str.lower, str.upper, str.title])


@st.composite
def secret_names(draw: st.DrawFn) -> str:
    words = draw(st.sampled_from([*SECRET_WORDS, *SECRET_ENDINGS])).split()
    separator = draw(SEPARATORS)
    before = draw(st.sampled_from(["", "db_", "x-", "é", "\n", "9"]))
    after = draw(st.sampled_from(["", "_", "_old", "2", "é", "\n", "\u212a"]))
    return before + separator.join(draw(CASES)(word) for word in words) + after


@given(secret_names(), st.text(string.printable, max_size=5))
def test_fast_check_misses_no_secret_name(name: str, text: str) -> None:
    if REDACTOR.is_secret_name(name):
        assert not REDACTOR.is_harmless(encode_json({text: 1, "a": {name: "x"}}).decode())


def test_custom_names_paths_and_patterns_are_redacted() -> None:
    redactor = Redactor(
        keys=["iban"],
        paths=["$.args.customer.*", "$.args.rows[*].email"],
        patterns={"case number": r"^CASE-\d+$"},
    )
    cleaned, notes = encode(
        {
            "customerIban": 1,
            "customer": {"name": "a", "age": 3},
            "rows": [{"email": "x", "id": 1}],
            "note": "CASE-12",
            "password": "p",
        },
        redactor,
    )
    assert cleaned == {
        "customerIban": MARK,
        "customer": {"name": MARK, "age": MARK},
        "rows": [{"email": MARK, "id": 1}],
        "note": MARK,
        "password": MARK,
    }
    assert {note["reason"] for note in notes} == {"name", "path", "case number"}
    assert encode({"email": "x"}, redactor, "$.output.data") == ({"email": "x"}, [])


def test_default_rules_can_be_disabled() -> None:
    assert encode({"password": TOKEN}, Redactor(defaults=False)) == ({"password": TOKEN}, [])


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\1", "("])
def test_unsafe_patterns_are_rejected(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        Redactor(patterns={"bad": pattern})


@pytest.mark.parametrize("path", ["args.x", "$", "$.a..b", "$[x]", ""])
def test_invalid_paths_are_rejected(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        Redactor(paths=[path])


def test_values_nested_too_deep_for_the_server_are_truncated() -> None:
    deep: Any = "bottom"
    for _ in range(80):
        deep = [deep]
    cleaned, notes = encode({"deep": deep})
    assert "too deep" in {note["reason"] for note in notes}
    assert json.dumps(cleaned).count("[") < 64


def test_results_and_errors_are_redacted(trail: MemoryTrail) -> None:
    @trail.tool
    def login(user: str) -> dict[str, str]:
        if user == "x":
            raise ValueError(f"refused: {TOKEN}")
        return {"access_token": "hunter2"}

    login("a")
    with pytest.raises(ValueError, match="refused"):
        login("x")
    text = json.dumps(trail.events)
    assert "hunter2" not in text
    assert TOKEN not in text
    assert trail.events[3]["output"]["error"]["message"] == MARK


def test_redaction_can_be_disabled_for_one_tool(trail: MemoryTrail) -> None:
    @trail.tool(redact=False)
    def login(password: str) -> None: ...

    login("visible")
    assert trail.events[0]["args"] == {"password": "visible"}


def test_result_meta_is_redacted(trail: MemoryTrail) -> None:
    @trail.tool
    def search() -> Any:
        trail.current().routing = {"profile": "small", "api_key": "hunter2"}
        return {"status": "ok", "data": 1, "meta": {"note": f"Bearer {TOKEN}"}}

    search()
    meta = trail.events[1]["output"]["meta"]
    assert meta["routing"] == {"profile": "small", "api_key": MARK}
    assert meta["note"] == MARK
    assert [note["path"] for note in trail.events[1]["removed"]] == [
        "$.output.meta.routing.api_key",
        "$.output.meta.note",
    ]


@pytest.mark.parametrize("capture", ["shape", "none"])
def test_result_meta_keeps_only_numbers_when_values_are_not_captured(
    trail: MemoryTrail, capture: Any
) -> None:
    @trail.tool(capture=capture)
    def search() -> Any:
        call = trail.current()
        call.token_usage, call.attempt = {"prompt": 12}, 2
        call.routing = {"profile": "of Ada Lovelace"}
        return {"status": "ok", "data": 1, "meta": {"note": "on Ada Lovelace"}}

    search()
    assert trail.events[1]["output"]["meta"] == {
        "took_ms": 1,
        "token_usage": {"prompt": 12},
        "attempt": 2,
    }
    assert "Lovelace" not in json.dumps(trail.events)


JSON_TEXT = json.dumps({"user": "ada", "password": "hunter2", "n": 1})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (JSON_TEXT, '{"user": "ada", "password": "[redacted]", "n": 1}'),
        # Spacing, numbers and doubled members stay as they were written.
        ('[ {"n":1e400,"pwd":[1,2] , "n":1}]', '[ {"n":1e400,"pwd":"[redacted]" , "n":1}]'),
        (' {"a":{"credentials":{"user":"u"}}}\n', ' {"a":{"credentials":"[redacted]"}}\n'),
        ('{"a":"see","auth":null}', '{"a":"see","auth":null}'),
        ('{"\\u0070assword":"hunter2"}', '{"\\u0070assword":"[redacted]"}'),
        # A member with a well-known form goes alone, the rest of the text stays.
        (f'{{"a":"{TOKEN}","b":1}}', '{"a":"[redacted]","b":1}'),
        # What is no JSON: cut off, Python's repr, an address, a message that quotes.
        ('{"user":"ada","password":"hunt', '{"user":"ada","password":"[redacted]'),
        ('{"user":"ada","secrets":["a","b', '{"user":"ada","secrets":[redacted]'),
        ("{'password': 'hunter2', 'n': 1}", "{'password': '[redacted]', 'n': 1}"),
        ("{'password': b'hun\\'ter2', 'n': 1}", "{'password': b'[redacted]', 'n': 1}"),
        ("Login(user='ada', password='hunter2')", "Login(user='ada', password='[redacted]')"),
        ("GET /x?api_key=hunter2&page=2", "GET /x?api_key=[redacted]&page=2"),
        ('no login with {"password": "hunter2"}', 'no login with {"password": "[redacted]"}'),
        (r'sent "{\"password\":\"hunter2\",\"n\":1}"',
         r'sent "{\"password\":\"[redacted]\",\"n\":1}"'),
        ("password = 'hunter2', n = 1", "password = '[redacted]', n = 1"),
        ("DB_PASSWORD := hunter2\nn := 1", "DB_PASSWORD := [redacted]\nn := 1"),
        ("failed: BasicAuth(auth=Basic('ada', 'hunter2'), n=1)",
         "failed: BasicAuth(auth=[redacted], n=1)"),
        ("{'secrets': ['a]\\'', {'b': 'c'}], 'n': 1}", "{'secrets': [redacted], 'n': 1}"),
        ("token = os.environ['it'].x\nn = 1", "token = [redacted].x\nn = 1"),
        (r'sent "{\"secrets\":[\"a]b\"],\"n\":1}"', r'sent "{\"secrets\":[redacted]'),
        ("{ user: 'ada', password: 'hunter2', n: 1 }",
         "{ user: 'ada', password: '[redacted]', n: 1 }"),
        ('{"password"=>"hunter2", :secret=>"x"}',
         '{"password"=>"[redacted]", :secret=>"[redacted]"}'),
        # Lines of headers and YAML, and the password of a URL.
        ("GET / HTTP/1.1\r\nAuthorization: Basic YTpi\r\nHost: x",
         "GET / HTTP/1.1\r\nAuthorization: [redacted]\r\nHost: x"),
        ("> authorization: Bearer x", "> authorization: [redacted]"),
        ("Set-Cookie: s=1; Path=/; HttpOnly", "Set-Cookie: [redacted]"),
        ("db:\n  - password: hunter2\n    user: ada",
         "db:\n  - password: [redacted]\n    user: ada"),
        ("access_token: 'a b'\nn: 1", "access_token: '[redacted]'\nn: 1"),
        ("no answer of postgresql://ada:hunter2@db/x",
         "no answer of postgresql://ada:[redacted]@db/x"),
        ("redis://:hunter2@db and amqp://a:b@c", "redis://:[redacted]@db and amqp://a:[redacted]@c"),
        ("password: at least 8 characters", None),
        ("token: unexpected", None),
        ("http://host:80/@me, git@host:a/b, mail a:b@host, https://host/x?a=b:c@d", None),
        # Prose, and names that are none.
        ("if password == given, or the token != 5", None),
        ("Unexpected token: '<' at 1, no password given", None),
        ("max_tokens=5, tokens=[1, 2], author='ada'", None),
        ('{"max_tokens": 5', None),
    ],
)  # fmt: skip  # a table, one case after the other
def test_secret_names_are_redacted_inside_texts(text: str, left: str | None) -> None:
    expected = text if left is None or left == text else left
    cleaned, notes = encode({"a": [text]})
    assert cleaned == {"a": [expected]}
    reason = [] if expected == text else [{"path": "$.args.a[0]", "reason": "name"}]
    assert notes == reason or f'"{TOKEN}"' in text
    assert REDACTOR.clean_text(expected) == (expected, None)


def test_nested_json_texts_are_redacted_at_any_depth() -> None:
    value: Any = {"password": "hunter2", "kept": "x"}
    for depth in range(12):
        value = {"body": json.dumps(value)}
        (text,) = value.values()
        cleaned, reason = REDACTOR.clean_text(text)
        assert "hunter2" not in cleaned
        assert reason is not None
        assert ("kept" in cleaned) is (depth <= TEXTS_DEEP_MAX)


def test_custom_patterns_apply_inside_json_texts() -> None:
    redactor = Redactor(patterns={"iban": r"^DE\d+$"})
    assert encode('{"to":"DE89","n":"x"}', redactor) == (
        '{"to":"[redacted]","n":"x"}',
        [{"path": "$.args", "reason": "name"}],
    )


@pytest.mark.parametrize(
    "text", ['"a' * 60_000, "\\" * 120_000, "password=" * 13_000, "'x' :" * 24_000, "a-" * 60_000,
             '{"password":' * 10_000, "[" * 100_000 + "password", '"pwd":\\"' * 15_000,
             'password="' + "\\" * 120_000, "password" + " " * 120_000, "{pwd " * 24_000,
             ", a :" * 24_000, "pwd=(" * 24_000, "://a:" * 24_000, "pwd: " * 24_000,
             "pwd: " + "x; " * 40_000, "pwd: x " + "y " * 60_000, "\n    " * 24_000],
)  # fmt: skip  # a table, one case after the other
def test_redaction_of_hostile_texts_takes_linear_time(text: str) -> None:
    began = time.process_time()
    REDACTOR.clean_text(text + ' password="x"')
    assert time.process_time() - began < 10  # quadratic took minutes
