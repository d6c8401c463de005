"""A webhook: a CloudEvents 1.0 event, signed as Standard Webhooks says.

https://www.standardwebhooks.com, https://cloudevents.io. The schema of the body is published in
`docs/schemas/alert-message.json`.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from audit.deliveries.sender.http import post
from audit.deliveries.sender.job import Answer, Job

SECRET_PREFIX = "whsec_"  # noqa: S105  # how each secret begins
SECRET_BYTES = 32


def send(job: Job) -> Answer:
    """Send a message. Raises as `post` does."""
    body = json.dumps(event(job.message), ensure_ascii=False).encode()
    message_id, seconds = f"msg_{job.message['id']}", int(time.time())
    headers = {
        "Content-Type": "application/cloudevents+json; charset=utf-8",
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": signature(job.secrets["secret"], message_id, seconds, body),
    }
    is_delivered, status, text = post(job.settings["url"], body, headers, job.timeout_s)
    return Answer(job.id, is_delivered, text, status)


def event(message: Mapping[str, Any]) -> dict[str, Any]:
    """The body: a structured CloudEvents event with the message as its data."""
    return {
        "specversion": "1.0",
        "id": message["id"],
        "source": message["source"],
        "type": f"tooltrail.alert.{message['kind']}",
        "subject": message["rule"],
        "time": message["at"],
        "datacontenttype": "application/json",
        "data": {
            name: message[name]
            for name in ("kind", "rule", "severity", "title", "text", "url", "facts")
        },
    }


def signature(secret: str, message_id: str, seconds: int, body: bytes) -> str:
    """The header `webhook-signature`: version 1, HMAC-SHA256."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{message_id}.{seconds}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
