"""OTLP over gRPC: the methods `Export` of traces, logs and metrics. Needs the extra `grpc`.

Reads gRPC and writes answers. Requests take the same path as those over HTTP, with the same limits.
gRPC itself inflates messages without a limit, so it is configured not to: a message is read as it
was sent. The methods are served as streams of requests, because gRPC then calls them before it
reads a message: a request without a place or a valid key is refused without its body.
"""

import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NoReturn
from urllib.parse import unquote

import grpc
from django.db import connections
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from audit.events.limits import MAX_COMPRESSED_BYTES
from audit.intake import metrics
from audit.intake.admission import ADMISSION, RETRY_AFTER_S, OverloadedError
from audit.intake.otlp.answers import GRPC_CODES
from audit.intake.otlp.exports import RefusedError, export, identity
from audit.intake.otlp.signals import LOGS, METRICS, PROTOBUF, TRACES, Signal
from config.http.request_ids import HEADER, begin, log_request
from config.http.slow_senders import GRACE_S

THREADS = 16
"""As many as a web process has: those that store, those that read, those that refuse."""
STREAMS_MAX = 100
"""Requests at once on one connection. Further ones wait at the client."""
_ID = HEADER.lower()
_CODES = {code.value[0]: code for code in grpc.StatusCode}

_log = logging.getLogger(__name__)


def new_server() -> grpc.Server:
    """The server of this process. It has no port yet."""
    services = [
        grpc.method_handlers_generic_handler(
            _service(signal),
            {"Export": grpc.stream_unary_rpc_method_handler(partial(receive, signal))},
        )
        for signal in (TRACES, LOGS, METRICS)
    ]
    return grpc.server(
        ThreadPoolExecutor(THREADS, "grpc"),
        handlers=services,
        options=[
            ("grpc.per_message_decompression", 0),
            ("grpc.max_receive_message_length", MAX_COMPRESSED_BYTES),
            ("grpc.max_concurrent_streams", STREAMS_MAX),
            ("grpc.so_reuseport", 0),
        ],
    )


def receive(signal: Signal, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
    """Receive the export request of a signal; OK once its tool calls are stored.

    The key is sent as metadata, `authorization: Bearer tt_…` or `x-api-key: tt_…`. A request that
    is worth a retry is answered with RetryInfo. Each answer has the request's id
    (`config.http.request_ids`) in its trailing metadata.
    """
    began = time.perf_counter()
    given = {name: value for name, value in context.invocation_metadata() if type(value) is str}
    request_id = (_ID, begin(given.get(_ID, "")))
    path = f"/{_service(signal)}/Export"
    try:
        answer = _received(signal, requests, context, given)
        # Never in the initial metadata: OpenTelemetry's Java exporter repeats a refused request
        # only if its status comes in the headers, which gRPC does only without that.
        context.set_trailing_metadata((request_id,))
        log_request("POST", path, 200, began)
        return answer
    except RefusedError as refusal:
        refused = refusal
    except OverloadedError:
        metrics.Request().done(503)
        refused = RefusedError(503, "Too many requests at once.", RETRY_AFTER_S)
    except grpc.RpcError:
        raise  # the sender has gone, or was too slow
    except Exception:
        _log.exception("a request over gRPC failed")
        refused = RefusedError(500, "Internal error.")
    finally:
        connections.close_all()  # back to the pool
    log_request("POST", path, refused.status, began)
    return _refuse(context, refused, request_id)


def _service(signal: Signal) -> str:
    service = signal.response.DESCRIPTOR.file.services_by_name.values()[0]
    return str(service.full_name)


def _received(
    signal: Signal,
    requests: Iterator[bytes],
    context: grpc.ServicerContext,
    given: Mapping[str, str],
) -> bytes:
    with ADMISSION.place(0):
        key = identity(
            given.get("authorization", ""), given.get("x-api-key", ""), address_of(context.peer())
        )
        with ADMISSION.share(key.tenant_id, 0):
            sent = _read(requests, context)
    with ADMISSION.place(len(sent)):
        counted = metrics.Request()
        status = 500
        try:
            answer = export(
                signal,
                key,
                lambda: sent,
                size=len(sent),
                encoding=encoding_of(sent),
                media_type=PROTOBUF,
                counted=counted,
            )
            status = 200
            return answer
        except RefusedError as refusal:
            status = refusal.status
            raise
        finally:
            counted.done(status)


def _read(requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
    """The request's message as it was sent. A sender that is too slow is cut off."""
    slow = threading.Timer(GRACE_S, context.cancel)
    slow.daemon = True
    slow.start()
    try:
        return next(requests)
    except StopIteration:
        raise RefusedError(400, "The request has no message.") from None
    finally:
        slow.cancel()


def address_of(peer: str) -> str:
    """The address in gRPC's name of a peer, such as `ipv4:10.0.0.7:50412` or `ipv6:%5B::1%5D:1`."""
    host = unquote(peer).partition(":")[2].rpartition(":")[0]
    return host.strip("[]")


def encoding_of(sent: bytes) -> str:
    """How a message is compressed. gRPC keeps the name to itself, but its formats show it.

    No export request begins like gzip, whose first byte names a kind of field that does not exist,
    or like zlib, whose first byte names the field 15.
    """
    if sent[:2] == b"\x1f\x8b":
        return "gzip"
    if sent[:1] == b"\x78" and int.from_bytes(sent[:2]) % 31 == 0:
        return "deflate"
    return "identity"


def _refuse(
    context: grpc.ServicerContext, refusal: RefusedError, request_id: tuple[str, str]
) -> NoReturn:
    code = GRPC_CODES[refusal.status]
    status = status_pb2.Status(code=code, message=refusal.message)
    trailing: list[tuple[str, str | bytes]] = [request_id]
    if refusal.retry_after_s is not None:
        seconds = max(1, math.ceil(refusal.retry_after_s))
        again = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=seconds))
        packed = any_pb2.Any()
        packed.Pack(again)
        status.details.append(packed)
        # Python's exporter looks for it only here.
        trailing.append(("google.rpc.retryinfo-bin", again.SerializeToString()))
    trailing.append(("grpc-status-details-bin", status.SerializeToString()))
    context.set_trailing_metadata(tuple(trailing))
    context.abort(_CODES[code], refusal.message)
