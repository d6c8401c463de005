"""Opens the way of a stream."""

import ssl

from django.conf import settings as server

from audit.models import Stream, StreamWay
from audit.stream.secrets import secrets_of
from audit.stream.ways.files import FileWay
from audit.stream.ways.https import JsonLinesWay, SplunkWay
from audit.stream.ways.syslog import SyslogWay, reason_of, show_certificate
from audit.stream.ways.way import SendError, Way
from config.http.bucket import Bucket


def open_way(stream: Stream) -> Way:
    """The way of a stream; nothing is connected yet. Raises BoxError, SendError."""
    to, secrets, allowed = stream.settings, secrets_of(stream), server.STREAM_ALLOW
    match stream.way:
        case StreamWay.SYSLOG:
            context = ssl.create_default_context()
            if to["ca"]:
                context.load_verify_locations(cadata=to["ca"])
            if certificate := to.get("certificate"):  # older streams have no such setting
                try:
                    show_certificate(context, certificate + secrets["key"])
                except ssl.SSLError as error:  # since it was entered, TLS here became stricter
                    raise SendError(reason_of(error)) from error
            return SyslogWay(
                to["host"],
                to["port"],
                context,
                hostname=server.LEDGER_HOST,
                of=stream.of,
                allowed=allowed,
            )
        case StreamWay.SPLUNK:
            return SplunkWay(
                to["url"],
                secrets["token"],
                channel=stream.id,
                has_acks=to["has_acks"],
                host=server.LEDGER_HOST,
                of=stream.of,
                form=stream.format,
                index=to["index"],
                ca=to["ca"],
                allowed=allowed,
            )
        case StreamWay.S3:
            bucket = Bucket(
                to["endpoint"],
                to["bucket"],
                region=to["region"],
                access_key=to["access_key"],
                secret_key=secrets["secret_key"],
                allowed=allowed,
                ca=to["ca"],
            )
            return FileWay(bucket, to["folder"], of=stream.of, stream_id=stream.id)
        case _:
            return JsonLinesWay(
                to["url"], secrets.get("authorization", ""), ca=to["ca"], allowed=allowed
            )
