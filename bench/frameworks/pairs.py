"""The pairs of a framework and an instrumentation, and how each is run."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pair:
    """A pair that really runs: the script of the SDK's adapter, with an instrumentation on."""

    id: str
    what: str
    framework: str
    """The folder in `sdk/tests/integrations` with the script and the framework's version."""
    start: str = "own"
    """How the instrumentation is turned on (`bench.frameworks.instrumented`)."""
    needs: tuple[str, ...] = ()
    """Further requirements."""
    environment: Mapping[str, str] = field(default_factory=dict)
    unreported: tuple[str, ...] = ()
    """What of the context the framework does not know, only the script."""
    theirs: Mapping[str, str] = field(default_factory=dict)
    """By column, why it is not right. Looked up in what the pair sent."""


NO_CONTENT = "no span has it"
_NO_MODEL = "no span above a tool's names the model"
_NO_STATUS = "the span of a cancelled call differs in nothing from that of a good one"
_SAYS_OK = "the span of a cancelled call says OK"
_HELD = "the span of a call that waits for a confirmation is like that of a call that ran"
_LATER = "a call that waited for a confirmation runs in another trace when it is confirmed"
_ASKS = "so is that of a tool that asks for a confirmation"
_ASKS_ITSELF = "the span of a tool that asks for a confirmation is like that of a call that ran"
_WAITS = "a call that waits for an approval has a span without a result"
_REDACTED = "the framework redacts messages"
_OWN_CONVERSATION = ("conversation",)
_CONTENT = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
}


def _oi(package: str, version: str) -> tuple[str, ...]:
    return (f"openinference-instrumentation-{package}=={version}",)


PAIRS = [
    Pair("pydantic-ai", "pydantic-ai, own v5", "pydantic_ai", "pydantic-ai"),
    Pair("pydantic-ai-v2", "pydantic-ai, own v2", "pydantic_ai", "pydantic-ai-v2"),
    Pair(
        "adk",
        "Google ADK, own",
        "google_adk",
        theirs={
            "once": _HELD,
            "args": NO_CONTENT,
            "result": NO_CONTENT,
            "error": _ASKS,
            "context": _NO_MODEL,
        },
    ),
    Pair(
        "adk-content",
        "Google ADK, own, content",
        "google_adk",
        environment=_CONTENT,
        theirs={
            "once": _LATER,
            "result": "ADK makes an object of a text",
            "error": _ASKS_ITSELF,
            "context": _NO_MODEL,
        },
    ),
    Pair(
        "adk-oi",
        "Google ADK, OpenInference",
        "google_adk",
        "adk-oi",
        _oi("google-adk", "1.0.5"),
        theirs={
            "args": "its span has no arguments",
            "once": _LATER,
            "result": "ADK makes an object of a text",
            "error": _ASKS_ITSELF,
            "context": "the spans name the outer session, the adapter the sub-agent's",
        },
    ),
    Pair(
        "oaa-oi",
        "OpenAI Agents, OpenInference",
        "openai_agents",
        "oaa-oi",
        _oi("openai-agents", "2.6.0"),
        theirs={
            "result": _WAITS,
            "error": f"{_REDACTED}; {_SAYS_OK}",
            "context": f"{_NO_MODEL}, none the group",
        },
    ),
    Pair(
        "oaa-tl",
        "OpenAI Agents, OpenLLMetry",
        "openai_agents",
        "oaa-tl",
        ("opentelemetry-instrumentation-openai-agents==0.62.4",),
        theirs={
            "result": _WAITS,
            "error": f"{_REDACTED}; {_SAYS_OK}",
            "nest": "a sub-agent's spans are not below the tool's",
            "context": f"{_NO_MODEL}, none the group",
        },
    ),
    Pair(
        "oaa-logfire",
        "OpenAI Agents, Logfire",
        "openai_agents",
        "oaa-logfire",
        ("logfire==5.2.0",),
        theirs={"result": _WAITS, "error": _REDACTED, "context": _NO_MODEL},
    ),
    Pair(
        "langchain-oi",
        "LangChain, OpenInference",
        "langchain",
        "langchain-oi",
        _oi("langchain", "0.1.80"),
        theirs={
            "args": "a single argument is sent without its name",
            "error": "OpenInference says OK of a tool that interrupts the run",
            "context": _NO_MODEL,
        },
    ),
    Pair(
        "langchain-trace",
        "LangChain, OpenLLMetry",
        "langchain",
        "langchain-trace",
        ("opentelemetry-instrumentation-langchain==0.62.4",),
        theirs={"context": _NO_MODEL},
    ),
    Pair(
        "langchain-lit",
        "LangChain, OpenLIT",
        "langchain",
        "langchain-lit",
        ("openlit==1.45.0",),
        theirs={"context": f"{_NO_MODEL}, none the agent"},
    ),
    Pair(
        "li",
        "LlamaIndex, OpenInference",
        "llama_index",
        "li",
        _oi("llama-index", "4.6.1"),
        unreported=_OWN_CONVERSATION,
    ),
    Pair(
        "smol",
        "smolagents, OpenInference",
        "smolagents",
        "smol",
        _oi("smolagents", "0.1.43"),
        unreported=_OWN_CONVERSATION,
        theirs={
            "all": "a managed agent is no tool's span",
            "name": "smolagents calls it a tool",
            "args": "code gives arguments without names",
            "nest": "a managed agent is no tool's span",
            "context": "no span names agent or model",
        },
    ),
    Pair(
        "agn",
        "Agno, OpenInference",
        "agno",
        "agn",
        _oi("agno", "1.0.15"),
        theirs={
            "all": "the span of a cancelled call is never sent",
            "result": "a yielding tool's items are sent as one text",
            "context": _NO_MODEL,
        },
    ),
    Pair(
        "autogen",
        "AutoGen, own",
        "autogen",
        unreported=_OWN_CONVERSATION,
        theirs={"args": NO_CONTENT, "result": NO_CONTENT, "error": _NO_STATUS},
    ),
    Pair(
        "autogen-oi",
        "AutoGen, own and OpenInference",
        "autogen",
        "autogen-oi",
        _oi("autogen-agentchat", "0.1.22"),
        unreported=_OWN_CONVERSATION,
    ),
    Pair(
        "strands",
        "Strands, own",
        "strands",
        unreported=_OWN_CONVERSATION,
        theirs={"context": "the span around a cancelled call is never sent"},
    ),
    Pair(
        "mcp2",
        "MCP 2.3, own",
        "mcp",
        theirs={
            "args": NO_CONTENT,
            "result": NO_CONTENT,
            "error": f"no span has the message; {_NO_STATUS}",
        },
    ),
    Pair(
        "fastmcp4",
        "FastMCP 4, own",
        "fastmcp",
        theirs={
            "args": NO_CONTENT,
            "result": NO_CONTENT,
            "error": _NO_STATUS,
        },
    ),
    Pair(
        "crewai",
        "CrewAI, OpenInference",
        "crewai",
        "crewai",
        _oi("crewai", "1.1.21"),
        unreported=_OWN_CONVERSATION,
        theirs={"error": "a ToolFailure is sent as OK", "context": _NO_MODEL},
    ),
]
