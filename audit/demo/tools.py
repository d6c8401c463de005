"""The demo's tools: each does real work and is one decorated function.

They use documents from `library` and the web server in `upstream`. They fail as real tools do: they
raise, or return the error envelope of the contracts.
"""

import http.client
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tooltrail import Trail

from audit.demo.library import Library, count_tokens, summarise
from audit.demo.upstream import Upstream

RELEASES = (1, 2)
"""Releases of the weather tools: the second one has a stricter schema."""


def _weather_schema(**stricter: Any) -> dict[str, Any]:
    properties = {
        "city": {"type": "string"},
        "station": {"type": "string"},
        "temperature": {"type": "number"},
        "unit": {"type": "string"},
        "humidity": {"type": "integer"},
        "description": {"type": "string"},
    }
    return {
        "type": "object",
        "properties": properties | stricter,
        "required": ["city", "temperature", "unit", "description"],
        "additionalProperties": False,
    }


WEATHER_SCHEMAS = {
    1: _weather_schema(),
    2: _weather_schema(
        station={"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}$"},
        temperature={"type": "number", "minimum": -90, "maximum": 60},
        unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
        humidity={"type": "integer", "minimum": 0, "maximum": 100},
    ),
}
SUMMARY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"summary": {"type": "string", "minLength": 1}, "tokens": {"type": "integer"}},
    "required": ["summary", "tokens"],
}
JOB_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"job": {"type": "string"}, "state": {"enum": ["queued", "running", "done"]}},
    "required": ["job", "state"],
}
CALCULATION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"expression": {"type": "string"}, "value": {"type": "number"}},
    "required": ["expression", "value"],
}
_CALCULATION = "import sys, json, math; print(json.dumps(eval(sys.argv[1], vars(math))))"


@dataclass(frozen=True)
class Tools:
    """The tools by name, as an agent gets them."""

    search_docs: Callable[..., Any]
    read_file: Callable[..., Any]
    fetch_page: Callable[..., Any]
    get_weather: Callable[..., Any]
    get_forecast: Callable[..., Any]
    calculate: Callable[..., Any]
    summarise_text: Callable[..., Any]
    lookup_term: Callable[..., Any]
    poll_job: Callable[..., Any]
    save_note: Callable[..., Any]
    notify_user: Callable[..., Any]


def make_tools(
    trail: Trail, library: Library, upstream: Upstream, release: int = RELEASES[-1]
) -> Tools:
    """Create the tools of a release. `trail` records them; they use `library` and `upstream`.

    Their versions are the numbers that the registry will give them.
    """
    return Tools(
        **_library_tools(trail, library, upstream),
        **_web_tools(trail, upstream),
        **_weather_tools(trail, upstream, release),
        **_text_tools(trail, upstream),
        **_people_tools(trail, upstream),
    )


type _Tools = dict[str, Callable[..., Any]]


def _library_tools(trail: Trail, library: Library, upstream: Upstream) -> _Tools:
    terms: dict[str, list[dict[str, str | float]]] = {}

    @trail.tool(version="1", timeouts_ms=1_000)
    def search_docs(query: str, limit: int = 5) -> Any:
        """Find documents by full text, best first."""
        call = trail.current()
        upstream.sleep(35 + len(query) * 4)
        try:
            hits = library.search(query, limit)
        except ValueError as error:
            return {
                "status": "error",
                "error": {"type": "VALIDATION", "message": str(error), "code": "bad_query"},
                "meta": {},
            }
        call.source_counts = {"pages": len(hits)}
        call.routing = {"index": "fts5", "profile": "default"}
        return hits

    @trail.tool(version="1")
    def read_file(name: str) -> str:
        """Read one document as text, at most 4,000 characters."""
        upstream.sleep(12)
        return library.read(name)[:4_000]

    @trail.tool(version="1")
    def lookup_term(term: str) -> Any:
        """Where a term is explained; the second time from the cache."""
        call = trail.current()
        call.cache_hit = term in terms
        if term not in terms:
            upstream.sleep(60)
            terms[term] = library.search(term, 2)
        return terms[term]

    return {"search_docs": search_docs, "read_file": read_file, "lookup_term": lookup_term}


def _web_tools(trail: Trail, upstream: Upstream) -> _Tools:
    @trail.tool(version="1", timeouts_ms=2_000)
    def fetch_page(page: int, mood: str | None = None, attempt: int = 1) -> Any:
        """Fetch a page over HTTP; `attempt` counts the tries."""
        trail.current().attempt = attempt
        path = f"pages/{page}" + (f"?mood={mood}" if mood else "")
        try:
            return _get(upstream, path).decode(errors="replace")[:1_500]
        except urllib.error.HTTPError as error:
            kind = "RATE_LIMIT" if error.code == 429 else "UPSTREAM"
            wait = error.headers.get("Retry-After")
            return {
                "status": "error",
                "error": {
                    "type": kind,
                    "message": f"HTTP {error.code}: {json.loads(error.read())['error']}",
                    "code": f"http_{error.code}",
                    "upstream_status": error.code,
                    "endpoint": f"/{path}",
                    "retry_after_ms": int(float(wait) * 1000) if wait else None,
                    "attempt": attempt,
                },
                "meta": {},
            }
        except http.client.IncompleteRead as error:
            raise ConnectionResetError(f"/{path} hung up in the middle") from error

    @trail.tool(
        version="1",
        output_schema=JOB_SCHEMA,
        on_invalid="fallback",
        fallback_value={"job": "", "state": "queued"},
    )
    def poll_job(job: str) -> Any:
        """Ask how far a job is; an unknown state counts as queued."""
        return json.loads(_get(upstream, f"jobs/{job}"))

    return {"fetch_page": fetch_page, "poll_job": poll_job}


def _weather_tools(trail: Trail, upstream: Upstream, release: int) -> _Tools:
    def weather_of(city: str, flaw: str | None) -> Any:
        return json.loads(
            _get(upstream, f"weather?city={city}" + (f"&flaw={flaw}" if flaw else ""))
        )

    @trail.tool(
        version=str(release),
        output_schema=WEATHER_SCHEMAS[release],
        on_collision="replace",
        on_invalid="throw",
        timeouts_ms=2_000,
    )
    def get_weather(city: str, flaw: str | None = None) -> Any:
        """The weather in a city now. An answer that breaks its schema is refused."""
        return weather_of(city, flaw)

    @trail.tool(
        version=str(release),
        output_schema=WEATHER_SCHEMAS[release],
        on_collision="replace",
        on_invalid="coerce-and-warn",
        timeouts_ms=2_000,
    )
    def get_forecast(city: str, flaw: str | None = None) -> Any:
        """Tomorrow's weather. Numbers sent as text are put right and noted."""
        return weather_of(city, flaw)

    return {"get_weather": get_weather, "get_forecast": get_forecast}


def _text_tools(trail: Trail, upstream: Upstream) -> _Tools:
    @trail.tool(
        version="1", output_schema=CALCULATION_SCHEMA, on_invalid="error-result", timeouts_ms=5_000
    )
    def calculate(expression: str) -> Any:
        """Evaluate an arithmetic expression in a process of its own."""
        completed = subprocess.run(  # noqa: S603  # the demo's own expressions
            [sys.executable, "-S", "-I", "-c", _CALCULATION, expression],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
        if completed.returncode:
            raise ArithmeticError(completed.stderr.strip().rsplit("\n", 1)[-1])
        return {"expression": expression, "value": json.loads(completed.stdout)}

    @trail.tool(version="1", output_schema=SUMMARY_SCHEMA, on_invalid="strip-extra")
    def summarise_text(text: str, sentences: int = 3) -> Any:
        """Summarise a text by its weightiest sentences, and count the tokens."""
        summary = summarise(text, sentences)
        prompt, completion = count_tokens(text), count_tokens(summary)
        trail.current().token_usage = {"prompt": prompt, "completion": completion}
        upstream.sleep(180 + completion * 3)
        answer: dict[str, Any] = {"summary": summary, "tokens": completion}
        if completion % 5 == 0:  # sometimes the model adds an undeclared member
            answer["model"] = "frequency-1"
        return answer

    return {"calculate": calculate, "summarise_text": summarise_text}


def _people_tools(trail: Trail, upstream: Upstream) -> _Tools:
    @trail.tool(version="1")
    def save_note(title: str, text: str, is_locked: bool = False) -> Any:
        """Keep a note; the store is locked at times."""
        upstream.sleep(25)
        if is_locked:
            return {
                "status": "error",
                "error": {
                    "type": "RETRYABLE",
                    "message": "database is locked",
                    "code": "sqlite_busy",
                    "cause": "OperationalError",
                    "retry_after_ms": 250,
                },
                "meta": {},
            }
        return {"title": title, "characters": len(text)}

    @trail.tool(version="1", timeouts_ms=30_000)
    def notify_user(user: str, message: str) -> Any:
        """Wait until a person has seen a message, which may be never."""
        threading.Event().wait()

    return {"save_note": save_note, "notify_user": notify_user}


def _get(upstream: Upstream, path: str, timeout_ms: int = 2_000) -> bytes:
    """Get a path of the demo's web server. Raises OSError."""
    try:
        with urllib.request.urlopen(  # noqa: S310  # our own loopback server
            f"{upstream.url}/{path}", timeout=timeout_ms / 1000 / upstream.pace
        ) as answer:
            body: bytes = answer.read()
            return body
    except OSError as error:  # urllib wraps timeouts of connecting, not of reading
        if isinstance(getattr(error, "reason", error), TimeoutError):
            raise TimeoutError(f"no answer within {timeout_ms:,} ms from /{path}") from error
        raise
