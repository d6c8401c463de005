"""The spans of the demo's models, as an instrumentation sends them: their tokens, and no text.

There is no model, so the numbers of tokens are invented.
"""

import json
import os
import random
import urllib.request
from contextlib import suppress
from datetime import datetime
from typing import Any

from audit.demo import clock

_TOOK_NS = 900_000_000


class Answers:
    """Answers of models that were not sent yet. `add` may be called by several threads."""

    def __init__(self) -> None:
        self._spans: list[dict[str, Any]] = []

    def add(self, number: int, who: tuple[str, str, str, str], run_id: str) -> None:
        """Add the answers of trace `number`: a conversation gets longer, and its cache with it."""
        rng = random.Random(number)
        took, cached = rng.randrange(900, 4_000), 0
        for turn in range(rng.randrange(2, 5)):
            gave = rng.randrange(60, 900)
            self._spans.append(_span(number, turn, who, run_id, (took, cached, gave), clock.now()))
            cached, took = took, took + gave + rng.randrange(200, 1_500)

    def send(self) -> None:
        """Send what was added. It is lost if the server cannot be reached, as it is only a demo."""
        spans, self._spans = self._spans, []
        if not spans:
            return
        scope = {"scope": {"name": "demo-models"}, "spans": spans}
        request = urllib.request.Request(  # noqa: S310  # the configured server
            os.environ["TOOLTRAIL_URL"].rstrip("/") + "/v1/traces",
            json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}).encode(),
            {
                "Content-Type": "application/json",
                "x-api-key": os.environ["TOOLTRAIL_API_KEY"],
            },
        )
        with suppress(OSError), urllib.request.urlopen(request, timeout=10):  # noqa: S310  # as above
            pass


def _span(
    number: int,
    turn: int,
    who: tuple[str, str, str, str],
    run_id: str,
    tokens: tuple[int, int, int],
    at: datetime,
) -> dict[str, Any]:
    agent, version, model, provider = who
    took, cached, gave = tokens
    start = int(at.timestamp() * 1_000_000) * 1_000 - _TOOK_NS
    texts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.agent.name": agent,
        "gen_ai.agent.version": version,
        "gen_ai.conversation.id": run_id,
    }
    counts = {
        "gen_ai.usage.input_tokens": took,
        "gen_ai.usage.cache_read.input_tokens": cached,
        "gen_ai.usage.output_tokens": gave,
    }
    return {
        "traceId": f"de{number:030x}",
        "spanId": f"{turn + 1:016x}",
        "name": f"chat {model}",
        "kind": 3,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + _TOOK_NS),
        "attributes": [
            *({"key": name, "value": {"stringValue": text}} for name, text in texts.items()),
            *({"key": name, "value": {"intValue": count}} for name, count in counts.items()),
        ],
    }
