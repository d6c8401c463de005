"""The process that receives OTLP over gRPC (docs/adr/0032). It needs the extra `grpc`."""

import argparse
import os
import signal
import sys

import django

from config.process.supervise import STOP_SIGNALS
from config.version import VERSION

_DRAIN_S = 1.0
"""Requests have this long to finish. The supervisor kills the process a little later."""


def main() -> None:
    """Run `python -m config.process.grpc_server`, as the supervisor does, until a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    # Before any thread starts, so that all have the mask and this one takes the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    # Both need the settings.
    from audit.intake.otlp.rpc import new_server
    from config.postgresql.processes import announce

    server = new_server()
    host = f"[{options.host}]" if ":" in options.host else options.host
    try:
        server.add_insecure_port(f"{host}:{options.port}")
    except RuntimeError:
        sys.exit(f"tooltrail: cannot listen on {host}:{options.port} for gRPC")
    server.start()
    announce("gRPC", VERSION)
    signal.sigwait(STOP_SIGNALS)
    server.stop(_DRAIN_S).wait()


if __name__ == "__main__":
    main()
