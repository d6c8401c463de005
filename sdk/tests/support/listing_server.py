"""A server of MCP that lists its tools, well-behaved or hostile: over standard streams or HTTP.

python listing_server.py MODE
"""

import json
import sys
import time
from typing import Any

TOOL = {"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object"}}
FAR_TOO_MUCH = 400_000
_SCHEMA_OF_AGES = "[" * 20_000


def answer_to(mode: str, request: dict[str, Any]) -> bytes | None:
    """The text that answers a request; None: there is no answer."""
    number, method = request["id"], request["method"]
    if method == "initialize":
        if mode == "no_handshake":
            return _text(number, error={"code": -32601, "message": "Method not found"})
        if mode == "refuses":
            return _text(number, error={"code": -32602, "message": "\x1b[31mno\n::error::"})
        if mode == "no_version":
            return _text(number, result={"protocolVersion": {"a": 1}})
        return _text(number, result={"protocolVersion": "2025-11-25", "capabilities": {}})
    params = request["params"]
    match mode:
        case "no_handshake":
            version = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
            return _text(number, result={"tools": [TOOL | {"name": version}]})
        case "paged":
            page = int(params.get("cursor", "0"))
            more = {"nextCursor": str(page + 1)} if page < 2 else {}
            return _text(number, result={"tools": [TOOL | {"name": f"echo_{page}"}], **more})
        case "endless_pages":
            return _text(number, result={"tools": [TOOL], "nextCursor": "again"})
        case "wrong_cursor":
            return _text(number, result={"tools": [TOOL], "nextCursor": {"a": 1}})
        case "no_list":
            return _text(number, result={"tools": {"a": 1}})
        case "empty":
            return _text(number, result={"tools": []})
        case "error":
            return _text(number, error={"code": -32000, "message": "\x1b[2J##[group]"})
        case "long":
            return _text(number, result={"tools": [TOOL | {"description": "x" * FAR_TOO_MUCH}]})
        case "deep":
            return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (number, _SCHEMA_OF_AGES.encode())
        case "nan":
            return b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[NaN]}}' % number
        case "other_id":
            return _text(number + 1, result={"tools": [TOOL]})
        case "silent":
            return None
        case _:
            return _text(number, result={"tools": [TOOL]})


def _text(number: int, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, **members}).encode()


def main(mode: str) -> None:
    """Serve on the standard streams."""
    out = sys.stdout.buffer
    if mode == "dies":
        return
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if mode == "chatty":
            out.write(b"Listening...\n\n[]\n" + _text(99, result={"tools": []}) + b"\n")
            out.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        if "id" not in request:
            continue
        while mode == "drips":
            out.write(b" ")
            out.flush()
            time.sleep(0.05)
        if (answer := answer_to(mode, request)) is not None:
            out.write(answer + b"\n")
            out.flush()
    while mode == "stays":
        time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
