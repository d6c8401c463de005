"""`TOOLTRAIL_GRPC_PORT`: the process that receives OTLP over gRPC, under the supervisor."""

import socket
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import grpc
import pytest

from config.process import up
from tests.support.installation import (
    DEADLINE_S,
    Installation,
    announcement,
    end,
    new_installation,
    prepared_installation,
)

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture
def installation() -> Iterator[Installation]:
    with prepared_installation() as created:
        yield created


@pytest.mark.slow
def test_port_is_served_until_the_end(installation: Installation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = installation.up("--json", "--dev-tenant", "acme", TOOLTRAIL_GRPC_PORT=str(port))
    facts = announcement(process)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        export: Any = channel.unary_unary(EXPORT)
        metadata = (("x-api-key", facts["api_key"]),)
        assert export(b"", metadata=metadata, wait_for_ready=True, timeout=DEADLINE_S) == b""
    assert end(process) == 0
    assert installation.processes() == []


@pytest.mark.slow
def test_port_in_use_is_reported() -> None:
    with (
        new_installation() as installation,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        port = str(taken.getsockname()[1])
        message = installation.refusal(TOOLTRAIL_GRPC_PORT=port)
    assert f"port {port} is in use; choose another with TOOLTRAIL_GRPC_PORT" in message


def test_missing_extra_is_reported() -> None:
    with (
        patch.object(up, "find_spec", return_value=None),
        pytest.raises(up.UpError, match="install the extra `grpc`"),
    ):
        up._check_grpc("127.0.0.1")
