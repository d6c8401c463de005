"""A server of MCP over standard streams, in the standard library: well-behaved, or hostile.

    python mcp_server.py MODE [LOG]

Each request that it reads is in the file LOG before its answer. `mcp_http_server.py` sends the
same answers over HTTP.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LONG_BYTES = 100_000_000
_PART_BYTES = 1_000_000
SERVER = {"name": "plain", "version": "1.0"}


def answer(request: dict[str, Any], result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n"


def answers(mode: str, request: dict[str, Any]) -> Iterator[bytes]:
    """The bytes that a server of this mode sends, in parts."""
    number = b"%d" % request["id"]
    begin = b'{"jsonrpc":"2.0","id":' + number + b',"result":'
    match request["method"], mode:
        case "initialize", _:
            said = {"protocolVersion": request["params"]["protocolVersion"], "serverInfo": SERVER}
            yield answer(request, {**said, "capabilities": {}})
        case "tools/list", _:
            yield answer(request, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        case _, "long":
            yield b'{"result":{"content":["'
            for _ in range(LONG_BYTES // _PART_BYTES):
                yield b"x" * _PART_BYTES
            yield b'"]},"jsonrpc":"2.0","id":' + number + b"}\n"
        case _, "values":
            yield begin + b'{"content":[' + b",".join([b"{}"] * 300_000) + b"]}}\n"
        case _, "secrets":
            yield begin + b'{"a":"' + b"password=x " * 22_000 + b'"}}\n'
        case _, "objects":  # small ones, a wide character, and a secret in each
            each = b",".join(b'{"k%d":"password=x"}' % n for n in range(7000))
            rest = b"password=x " * 20_000
            yield begin + b'{"a":[' + each + b'],"b":"\xf0\x9f\x98\x80' + rest + b'"}}\n'
        case _, "invalid":
            yield begin + b'{"a":"\xff\xfe"}}\n'
        case _, "garbage":
            yield b'not json\n{"id":\n\xff\xfe\x00\n' + b"[" * 20_000 + b"\n\n\r\n{}\n[]\n"
            yield answer(request, {"content": []})
        case _, "endless":
            while True:
                yield b'{"a":"' + b"y" * 65_000
        case _, "dies":
            yield begin + b'{"con'
            os.kill(os.getpid(), 9)
        case _, "environment":
            yield answer(request, {"content": [], "structuredContent": dict(os.environ)})
        case _:
            given = request["params"]["arguments"]
            yield answer(request, {"content": [], "structuredContent": given})


def main() -> None:
    mode, *log = sys.argv[1:]
    with Path(log[0] if log else os.devnull).open("ab", buffering=0) as file:
        for line in sys.stdin.buffer:
            try:
                request = json.loads(line)
            except ValueError:
                continue
            if "id" in request and "method" in request:
                file.write(b"%d\n" % request["id"])
                for part in answers(mode, request):
                    sys.stdout.buffer.write(part)
                    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
