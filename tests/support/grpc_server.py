"""The gRPC server on the test database, in this process but on a real port."""

from collections.abc import Iterator
from contextlib import contextmanager

from audit.intake.otlp.rpc import new_server


@contextmanager
def running_grpc_server() -> Iterator[str]:
    """Serve until the block ends. Gives the address, as `127.0.0.1:4317`."""
    server = new_server()
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(grace=5).wait()
