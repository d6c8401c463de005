"""Removes what frameworks wrap around arguments and results. The span keeps it.

Pure. A wrapper is known by all its members, and a value that has others stays as it is. Texts that
are no JSON but read as a Python literal (`str()` of a dict) are read, and are marked as guessed.
"""

import ast
import json
import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from audit.events.decode import is_too_deep

MAX_VALUE_DEPTH = 40
"""Arguments and results nested deeper stay JSON text, because events have a limit on nesting."""
_LONGEST_LITERAL = 16_384
"""Longer texts stay texts: Python's parser takes up to 1 µs a character."""


class Unwrapped(msgspec.Struct, frozen=True, gc=False):
    """A value without its wrapper, and what the wrapper says."""

    value: Any
    is_error: bool | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_guessed: bool = False


class _Kwargs(msgspec.Struct, forbid_unknown_fields=True):
    kwargs: msgspec.Raw
    args: list[Any] = []
    sanitize_inputs_outputs: bool = True


class _Inputs(msgspec.Struct):
    input_str: str
    metadata: dict[str, Any]
    inputs: msgspec.Raw = msgspec.Raw(b"null")
    kwargs: dict[str, Any] = {}


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    tool_name: str
    arguments: msgspec.Raw


class _Params(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"null")


class _Request(msgspec.Struct):
    method: Literal["tools/call"]
    params: _Params


class _ToolMessage(msgspec.Struct):
    content: msgspec.Raw
    tool_call_id: str
    status: str = "success"


class _Typed(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["tool"]
    data: _ToolMessage


class _Constructor(msgspec.Struct):
    lc: int
    kwargs: _ToolMessage


class _Constructed(msgspec.Struct):
    output: _Constructor


class _Plain(msgspec.Struct):
    output: _ToolMessage


class _CallbackOptions(msgspec.Struct):
    tags: list[str]
    color: str | None


class _Callback(msgspec.Struct, forbid_unknown_fields=True):
    output: msgspec.Raw
    kwargs: _CallbackOptions


class _ToolOutput(msgspec.Struct):
    raw_input: msgspec.Raw
    raw_output: msgspec.Raw
    tool_name: str
    is_error: bool = False


class _FunctionResponse(msgspec.Struct, forbid_unknown_fields=True):
    id: str | None
    name: str
    response: msgspec.Raw


class _NamedResult(msgspec.Struct, forbid_unknown_fields=True):
    result: msgspec.Raw
    is_error: bool | None = None


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    text: str


def _kwargs(read: Any) -> Unwrapped | None:
    return None if read.args or not _is_object(read.kwargs) else Unwrapped(read.kwargs)


def _inputs(read: Any) -> Unwrapped | None:
    tool_call_id = read.kwargs.get("tool_call_id")
    known = tool_call_id if isinstance(tool_call_id, str) else None
    if _is_object(read.inputs):
        return Unwrapped(read.inputs, tool_call_id=known)
    return msgspec.structs.replace(python_literal(read.input_str), tool_call_id=known)


def _message(read: Any) -> Unwrapped:
    """The content of LangChain's ToolMessage. A content that is a text is often JSON."""
    return Unwrapped(_text_or_json(read.content), read.status == "error" or None, read.tool_call_id)


def _tool_output(read: Any) -> Unwrapped:
    return Unwrapped(read.raw_output, read.is_error or None)


type _Rule = tuple[msgspec.json.Decoder[Any], Callable[[Any], Unwrapped | None]]
"""The members of a wrapper, and what is in it."""

_KEYWORDS: _Rule = msgspec.json.Decoder(_Kwargs), _kwargs
_CALLED: _Rule = (
    msgspec.json.Decoder(_Named),
    lambda read: Unwrapped(read.arguments, tool_name=read.tool_name),
)
_REQUESTED: _Rule = (
    msgspec.json.Decoder(_Request),
    lambda read: Unwrapped(read.params.arguments, tool_name=read.params.name),
)
_RESPONDED: _Rule = (
    msgspec.json.Decoder(_FunctionResponse),
    lambda read: Unwrapped(read.response, tool_call_id=read.id),
)
_WRITTEN: _Rule = msgspec.json.Decoder(_ToolOutput), _tool_output
_TYPED_MESSAGE: _Rule = msgspec.json.Decoder(_Typed), lambda read: _message(read.data)

_ARGUMENTS: dict[bytes, tuple[_Rule, ...]] = {
    # LlamaIndex, dspy, smolagents. With positional arguments, their names are not known.
    **dict.fromkeys((b"kwargs", b"args", b"sanitize_inputs_outputs"), (_KEYWORDS,)),
    b"input_str": ((msgspec.json.Decoder(_Inputs), _inputs),),  # OpenLLMetry: LangChain
    **dict.fromkeys((b"tool_name", b"arguments"), (_CALLED,)),  # OpenLLMetry: MCP
    **dict.fromkeys((b"method", b"params"), (_REQUESTED,)),  # Logfire: MCP
}
"""Rules by the first member of an object: looking into every value would take 9 µs."""
_RESULTS: dict[bytes, tuple[_Rule, ...]] = {
    # LangChain's ToolMessage, as its tracers write it
    **dict.fromkeys((b"type", b"data"), (_TYPED_MESSAGE,)),
    b"output": (
        (msgspec.json.Decoder(_Constructed), lambda read: _message(read.output.kwargs)),
        (msgspec.json.Decoder(_Plain), lambda read: _message(read.output)),
        (msgspec.json.Decoder(_Callback), lambda read: Unwrapped(_text_or_json(read.output))),
    ),
    **dict.fromkeys((b"blocks", b"content", b"tool_name"), (_WRITTEN,)),  # LlamaIndex
    **dict.fromkeys((b"id", b"name", b"response"), (_RESPONDED,)),  # Google ADK
}
_NAMED_RESULT = msgspec.json.Decoder(_NamedResult)
_TEXTS = msgspec.json.Decoder(list[_Text])
_STRING = msgspec.json.Decoder(str)


def unwrap_arguments(value: Any) -> Unwrapped:
    """Arguments without what an instrumentation put around them."""
    return _unwrap(value, _ARGUMENTS)


def unwrap_result(value: Any) -> Unwrapped:
    """A result without what a framework or an instrumentation put around it."""
    if isinstance(value, str) and (match := _MESSAGE.match(value)):
        content = python_literal(match["content"]).value
        return Unwrapped(
            json_in(content) if isinstance(content, str) else content,
            match["status"] == "error" or None,
            match["id"],
            is_guessed=True,
        )
    return _unwrap(value, _RESULTS)


def named_result(value: Any) -> Unwrapped:
    """The result in `{"result": …, "is_error": …}`, as OpenLLMetry writes results of MCP."""
    try:
        read = _NAMED_RESULT.decode(value)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return Unwrapped(value)
    return Unwrapped(_text_or_json(read.result), read.is_error)


def only_text(value: Any) -> Any:
    """The text in `[{"text": …}]` (Strands), as JSON if it is; any other value unchanged."""
    try:
        texts = _TEXTS.decode(value)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return value
    return json_in(texts[0].text) if len(texts) == 1 else value


def is_schema(value: Any) -> bool:
    """Whether a value is the JSON schema of arguments: an object's, or one of each argument."""
    if not isinstance(value, dict) or not value:
        return False
    if value.get("type") == "object" or isinstance(value.get("properties"), dict):
        return True
    return all(isinstance(each, dict) and "type" in each for each in value.values())


def python_literal(text: str) -> Unwrapped:
    """A text as the Python literal of a dict, list, tuple or text that it reads as."""
    if text[:1] in "{[('\"" and 1 < len(text) <= _LONGEST_LITERAL:
        try:
            value = ast.literal_eval(text)
            data = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, OverflowError):
            return Unwrapped(text)
        if isinstance(value, str):
            return Unwrapped(value, is_guessed=True)
        if isinstance(value, dict | list | tuple) and not is_too_deep(data, MAX_VALUE_DEPTH):
            return Unwrapped(msgspec.Raw(data), is_guessed=True)
    return Unwrapped(text)


_LANGCHAIN = re.compile(
    r"(?P<type>[A-Za-z_][\w.]*)\((?P<quote>['\"])(?P<message>.*?)(?P=quote),?\)"
    r"Traceback \(most recent call last\)",
    re.DOTALL,
)
"""LangChain's `repr()` of an error, directly followed by its traceback."""
_AGENTS_ERROR = "Error running tool (non-fatal)"


def stated_error(message: str) -> tuple[str | None, str]:
    """The type of an error, if its message states it, and the message itself.

    Without the traceback or the dict that LangChain, its JavaScript instrumentation and the OpenAI
    Agents SDK add.
    """
    if match := _LANGCHAIN.match(message):
        return match["type"], match["message"]
    javascript, _, stack = message.partition("\n\n")
    if "\n    at " in stack:
        return None, javascript
    if _AGENTS_ERROR in message[:100]:
        details = _dict_in(message[message.find("{") :])
        data = details.get("data", details)
        if isinstance(data, dict) and isinstance(message_of_data := data.get("error"), str):
            return None, message_of_data
    return None, message


def _dict_in(text: str) -> dict[str, Any]:
    value = json_in(text)
    if isinstance(value, str):
        value = python_literal(value).value
    read = msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else None
    return read if isinstance(read, dict) else {}


_SKIP = msgspec.json.Decoder(msgspec.Raw)


def json_in(text: str) -> Any:
    """An object or list in a text as `msgspec.Raw` on one line; any other text unchanged."""
    if text[:1] not in ("{", "["):
        return text
    try:
        data = text.encode()
        if is_too_deep(data, MAX_VALUE_DEPTH):
            return text
        _SKIP.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text
    # Line feeds in JSON are white space. An event must be on one line.
    return msgspec.Raw(data.replace(b"\n", b" ").replace(b"\r", b" "))


_MESSAGE = re.compile(
    r"content=(?P<content>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"(?: name='[^']*')?(?: id='[^']*')? tool_call_id='(?P<id>[^']+)'"
    r"(?: status='(?P<status>[^']*)')?$",
    re.DOTALL,
)
"""`str()` of a ToolMessage."""


def _unwrap(value: Any, rules: dict[bytes, tuple[_Rule, ...]]) -> Unwrapped:
    if isinstance(value, msgspec.Raw):
        data = bytes(value)
        _, _, rest = data[:64].partition(b'"')
        for decoder, read in rules.get(rest.partition(b'"')[0], ()):
            try:
                unwrapped = read(decoder.decode(data))
            except (msgspec.MsgspecError, ValueError, RecursionError):
                continue
            if unwrapped is not None:
                return unwrapped
        return Unwrapped(value)
    if isinstance(value, str) and value[:1] in ("{", "[", "("):
        return python_literal(value)
    return Unwrapped(value)


def _is_object(raw: msgspec.Raw) -> bool:
    return bytes(raw)[:1] == b"{"


def _text_or_json(raw: msgspec.Raw) -> Any:
    return json_in(_STRING.decode(raw)) if bytes(raw)[:1] == b'"' else raw
