"""One side of the comparison: the cluster, or the single node."""

import http.client
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bench.own_site import ROOT

type Request = tuple[str, str, bytes, int]
"""Slug of the tenant, batch id, compressed body, number of events."""


@dataclass
class Side:
    """The cluster, or the single node."""

    name: str
    site: Any
    hosts: list[Any]
    urls: list[str]
    tenants: dict[str, dict[str, str]] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)

    def run(self, *command: str) -> Any:
        """Run a command of `cluster_side.py` in this side's environment."""
        return json.loads(
            subprocess.check_output(
                [sys.executable, "-m", "bench.cluster_side", *command],
                cwd=ROOT,
                env=self.hosts[0].environment,
            )
        )

    def send(self, request: Request, first: int) -> None:
        """Send until it is stored, first to this host, and to the next one after a failure."""
        slug, batch_id, body, count = request
        headers = {
            "Authorization": f"Bearer {self.tenants[slug]['api_key']}",
            "Content-Type": "application/x-ndjson",
            "Content-Encoding": "gzip",
            "Idempotency-Key": batch_id,
        }
        at = first
        while True:
            url = self.urls[at % len(self.urls)]
            try:
                status, _, document = fetch(url, "/api/v1/events", headers, body)
            except (OSError, http.client.HTTPException):
                self.answers["no answer"] += 1
                at += 1
                time.sleep(0.05)
                continue
            self.answers[str(status)] += 1
            if status == 200:
                accepted = json.loads(document)["accepted"]
                if accepted != count:
                    raise SystemExit(f"{self.name}: {accepted} of {count} events accepted")
                return
            if status not in (429, 503):
                raise SystemExit(f"{self.name}: {status}: {document[:500]!r}")
            at += 1
            time.sleep(0.2)


def fetch(
    url: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, str, bytes]:
    """Status, content type and body of an answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read()
    finally:
        connection.close()
