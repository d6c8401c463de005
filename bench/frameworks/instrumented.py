"""Run the script of an SDK's adapter with an instrumentation on. Runs in the pair's environment.

    python instrumented.py INSTRUMENTATION RUN.PY OUT

Spans go where OTEL_EXPORTER_OTLP_ENDPOINT says. What the adapter recorded of the same calls is
written to OUT: it is what happened.
"""

import json
import runpy
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


def _processor() -> SimpleSpanProcessor:
    return SimpleSpanProcessor(OTLPSpanExporter())


def _provider() -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(_processor())
    trace.set_tracer_provider(provider)
    return provider


def _instrument(module: str, name: str) -> None:
    getattr(import_module(module), name)().instrument(tracer_provider=_provider())


def _own() -> None:
    _provider()


def _pydantic_ai(version: int) -> None:
    from pydantic_ai import Agent, InstrumentationSettings

    settings: Any = InstrumentationSettings(tracer_provider=_provider(), version=version)
    Agent.instrument_all(settings)


def _of_openai_agents(start: Callable[[], None]) -> None:
    """The script removes all processors of the framework's tracing: only those before it."""
    import agents

    agents.set_trace_processors([])
    start()
    agents.set_trace_processors = lambda processors: None


def _logfire() -> None:
    import logfire

    logfire.configure(
        send_to_logfire=False, console=False, additional_span_processors=[_processor()]
    )
    logfire.instrument_openai_agents()


def _openlit() -> None:
    import openlit

    openlit.init(disable_batch=True, disable_metrics=True)


def _openinference(framework: str, name: str) -> Callable[[], None]:
    return lambda: _instrument(f"openinference.instrumentation.{framework}", f"{name}Instrumentor")


def _openllmetry(framework: str, name: str) -> Callable[[], None]:
    return lambda: _instrument(f"opentelemetry.instrumentation.{framework}", f"{name}Instrumentor")


START: dict[str, Callable[[], None]] = {
    "own": _own,
    "pydantic-ai": lambda: _pydantic_ai(5),
    "pydantic-ai-v2": lambda: _pydantic_ai(2),
    "adk-oi": _openinference("google_adk", "GoogleADK"),
    "oaa-oi": lambda: _of_openai_agents(_openinference("openai_agents", "OpenAIAgents")),
    "oaa-tl": lambda: _of_openai_agents(_openllmetry("openai_agents", "OpenAIAgents")),
    "oaa-logfire": lambda: _of_openai_agents(_logfire),
    "langchain-oi": _openinference("langchain", "LangChain"),
    "langchain-trace": _openllmetry("langchain", "Langchain"),
    "langchain-lit": _openlit,
    "li": _openinference("llama_index", "LlamaIndex"),
    "smol": _openinference("smolagents", "Smolagents"),
    "agn": _openinference("agno", "Agno"),
    "autogen-oi": _openinference("autogen_agentchat", "AutogenAgentChat"),
    "crewai": _openinference("crewai", "CrewAI"),
}


class _Done(Exception):  # noqa: N818  # the end of the script, not a mistake
    pass


def main() -> None:
    """Run it, up to what the script does for its own test of OpenTelemetry."""
    start, script, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    sys.path.insert(0, str(script.parents[1]))
    stage: Any = import_module("stage")
    trails: list[Any] = []
    make_trail = stage.make_trail

    def noted() -> Any:
        trails.append(make_trail())
        return trails[-1]

    def done(*args: Any) -> Any:
        raise _Done

    stage.make_trail, stage.Beside, stage.finish = noted, done, done
    START[start]()
    with suppress(_Done):
        runpy.run_path(str(script), run_name="__main__")
    trace.get_tracer_provider().shutdown()  # type: ignore[attr-defined]  # the SDK's
    out.write_text(json.dumps([event for trail in trails for event in trail.events]))


if __name__ == "__main__":
    main()
