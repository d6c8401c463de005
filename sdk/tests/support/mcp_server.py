"""A server of MCP over standard streams, in the standard library: well-behaved, or hostile.

    python mcp_server.py MODE [LOG]

Each request that it reads is in the file LOG before its answer.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

LONG_BYTES = 100_000_000
SERVER = {"name": "plain", "version": "1.0"}


def send(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def answer(request: dict[str, Any], result: Any) -> None:
    send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n")


def serve(mode: str, request: dict[str, Any]) -> None:
    number = b"%d" % request["id"]
    match request["method"], mode:
        case "initialize", _:
            version = request["params"]["protocolVersion"]
            answer(request, {"protocolVersion": version, "serverInfo": SERVER, "capabilities": {}})
        case "tools/list", _:
            answer(request, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        case _, "long":
            long = b"x" * LONG_BYTES
            send(b'{"result":{"content":["' + long + b'"]},"jsonrpc":"2.0","id":' + number + b"}\n")
        case _, "values":
            values = b",".join([b"{}"] * 300_000)
            send(b'{"jsonrpc":"2.0","id":' + number + b',"result":{"content":[' + values + b"]}}\n")
        case _, "secrets":
            texts = b"password=x " * 22_000
            send(b'{"jsonrpc":"2.0","id":' + number + b',"result":{"a":"' + texts + b'"}}\n')
        case _, "garbage":
            send(b'not json\n{"id":\n\xff\xfe\x00\n' + b"[" * 20_000 + b"\n\n\r\n{}\n[]\n")
            answer(request, {"content": []})
        case _, "endless":
            while True:
                send(b'{"a":"' + b"y" * 65_000)
        case _, "dies":
            send(b'{"jsonrpc":"2.0","id":' + number + b',"result":{"con')
            os.kill(os.getpid(), 9)
        case _, "environment":
            answer(request, {"content": [], "structuredContent": dict(os.environ)})
        case _:
            answer(request, {"content": [], "structuredContent": request["params"]["arguments"]})


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
                serve(mode, request)


main()
