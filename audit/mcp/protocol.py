"""JSON-RPC messages of the Model Context Protocol, of 2025-03-26 to 2026-07-28. Pure.

Since 2026-07-28 each request says in `_meta` which version and client it is of, and repeats some of
that in headers. Earlier clients begin with `initialize`; what they say there is not repeated.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports
"""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LATEST: Final = "2026-07-28"
WITH_HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Versions whose clients begin with `initialize`, newest first."""
VERSIONS: Final = (LATEST, *WITH_HANDSHAKE)
BATCHED: Final = "2025-03-26"
"""The only version with several messages in one request. Its clients send no version."""
BATCH_MAX: Final = 20

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
REFUSED: Final = -32003
"""Ours: an access token is not accepted. The error's data is the problem (RFC 9457)."""
RESOURCE_NOT_FOUND: Final = -32002
"""Of versions with a handshake; later ones use INVALID_PARAMS."""

_META: Final = "io.modelcontextprotocol/"
VERSION_META: Final = f"{_META}protocolVersion"
CLIENT_META: Final = f"{_META}clientInfo"
CAPABILITIES_META: Final = f"{_META}clientCapabilities"
SERVER_META: Final = f"{_META}serverInfo"

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header `Mcp-Name` repeats, by method."""
_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")
_SESSION: Final = re.compile(r"[0-9a-f]{32}\.([A-Za-z0-9_-]{0,200})", re.ASCII)
_CLIENT_LENGTH: Final = 100


class RPCError(Exception):
    """Ends a request with an error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def status(self) -> int:
        """The status of HTTP for a request that has this error."""
        return 404 if self.code == METHOD_NOT_FOUND else 400


@dataclass(frozen=True, slots=True)
class Message:
    """A request or a notification."""

    method: str
    params: Mapping[str, Any]
    version: str
    """The version of the protocol that it is of."""
    client: str
    """The name that the client gave; '' if it gave none."""
    id: int | str | None = None
    """None: a notification, which has no answer."""
    client_version: str = ""
    """As the client says."""

    @property
    def is_stateless(self) -> bool:
        """Whether it is of a version without a handshake."""
        return self.version == LATEST


def version_of(header: str | None) -> str:
    """The version that the header `MCP-Protocol-Version` names. Raises RPCError."""
    version = BATCHED if header is None else header
    if version not in VERSIONS:
        supported = {"supported": list(VERSIONS), "requested": version[:_CLIENT_LENGTH]}
        raise RPCError(UNSUPPORTED_VERSION, "Unsupported protocol version", supported)
    return version


def messages_in(body: bytes, version: str) -> tuple[list[Any], bool]:
    """The messages of a request's body, not checked yet, and whether it is a batch.

    Raises RPCError.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RPCError(PARSE_ERROR, "The body is not valid JSON.") from error
    if not isinstance(value, list):
        return [value], False
    if version != BATCHED:
        raise RPCError(INVALID_REQUEST, "Send one message a request.")
    if not 0 < len(value) <= BATCH_MAX:
        raise RPCError(INVALID_REQUEST, f"A batch has 1 to {BATCH_MAX} messages.")
    return value, True


def id_of(value: Any) -> int | str | None:
    """The id of a message that may be invalid, for the answer that says so."""
    given = value.get("id") if isinstance(value, dict) else None
    return given if isinstance(given, int | str) and not isinstance(given, bool) else None


def read(value: Any, version: str, headers: Mapping[str, str]) -> Message:
    """A message of a client, checked. Raises RPCError."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise RPCError(INVALID_REQUEST, "A message is an object with jsonrpc: 2.0.")
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or not isinstance(params, dict | None):
        raise RPCError(INVALID_REQUEST, "A message has a method, and params that are an object.")
    given = params or {}
    client, client_version = _client_in_session(headers.get("Mcp-Session-Id", ""))
    if "id" not in value:
        return Message(method, given, version, client)
    if (number := id_of(value)) is None:
        raise RPCError(INVALID_REQUEST, "The id of a request is an integer or a string.")
    if version == LATEST:
        client, client_version = _checked(method, given, headers)
    elif method == "initialize":
        client, client_version = _client_of(given.get("clientInfo"))
    return Message(method, given, version, client, number, client_version)


def new_session(client: str, version: str) -> str:
    """An id that a client with a handshake repeats in each request: random, its name and version.

    The server keeps nothing of it, and it opens nothing.
    """
    name, number = (" ".join(text.split()).encode(errors="replace") for text in (client, version))
    encoded = base64.urlsafe_b64encode(name[:100] + b"\n" + number[:40])
    return f"{secrets.token_hex(16)}.{encoded.decode().rstrip('=')}"


def success(message: Message, result: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": message.id, "result": result}


def failure(number: int | str | None, error: RPCError) -> dict[str, Any]:
    """The answer to a request that has an error."""
    members = {"code": error.code, "message": error.message}
    if error.data is not None:
        members["data"] = error.data
    return {"jsonrpc": "2.0", "id": number, "error": members}


def _checked(method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[str, str]:
    """Name and version of a stateless client. Raises RPCError if a header and the body differ."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not {VERSION_META, CAPABILITIES_META} <= meta.keys():
        wanted = f"params._meta needs {VERSION_META} and {CAPABILITIES_META}."
        raise RPCError(INVALID_PARAMS, wanted)
    pairs = [
        ("MCP-Protocol-Version", meta[VERSION_META]),
        ("Mcp-Method", method),
    ]
    if (name := params.get(_NAMED.get(method, ""))) is not None:
        pairs.append(("Mcp-Name", name))
    for header, expected in pairs:
        if _decoded(headers.get(header)) != expected:
            raise RPCError(HEADER_MISMATCH, f"The header {header} differs from the body.")
    return _client_of(meta.get(CLIENT_META))


def _decoded(value: str | None) -> str | None:
    """The value of a header, which may be `=?base64?…?=`; None if it cannot be read."""
    encoded = _ENCODED.fullmatch(value or "")
    if encoded is None:
        return value
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _client_of(info: Any) -> tuple[str, str]:
    members = info if isinstance(info, dict) else {}
    given = (members.get("name"), members.get("version"))
    name, version = (one[:_CLIENT_LENGTH] if isinstance(one, str) else "" for one in given)
    return name, version


def _client_in_session(session: str) -> tuple[str, str]:
    matched = _SESSION.fullmatch(session)
    if matched is None:
        return "", ""
    encoded = matched[1]
    try:
        text = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode(
            errors="replace"
        )
    except binascii.Error:  # a length that base64 does not have: the id is not of this server
        return "", ""
    name, _, version = text.partition("\n")
    return name, version
