"""The registry's own export format: tools with all versions, states and descriptions.

Pure. `tool_document` writes a tool and `read_tool` reads it back without loss. Problems start
with the path: `tools[3].versions[0].input_schema: …`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from config.instants import iso_exact
from tools_registry.models import State, Tool, ToolVersion
from tools_registry.schemas import ToolContract, check_meta, check_text, explain, name_in
from tools_registry.tools import DESCRIBING
from tools_registry.versions import contract_of

FORMAT: Final = "tooltrail-registry"
FORMAT_VERSION: Final = 1
PROBLEMS_MAX: Final = 20
"""Maximum number of problems reported per tool."""

_TAGS_MAX, _TAG_LENGTH = 20, 50  # the same limits as in the form


@dataclass(frozen=True, slots=True)
class ReadVersion:
    """A version read from a document; `state` is None if the document has none."""

    path: str
    """Its place in the document."""
    number: int
    contract: ToolContract
    state: State | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    """When and by whom it was published in the registry of origin."""


@dataclass(slots=True)
class ReadTool:
    """A tool read from a document. With `problems` it is refused."""

    path: str
    """Its place in the document."""
    name: str
    versions: list[ReadVersion] = field(default_factory=list)
    """Ordered by number."""
    current_number: int = 0
    """In the numbering of the document; 0: no version is current."""
    description: dict[str, Any] = field(default_factory=dict)
    """Its description for people: members of `DESCRIBING`."""
    members: dict[str, Any] | None = None
    """The members of a contract that a provider's definition sets; None for our own format."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The form's names of a contract's members, where they differ."""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Parts of it that are not imported."""

    def refuse(self, problem: str) -> None:
        """Add a problem, up to `PROBLEMS_MAX`."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)


def _check_link(link: str) -> str:
    if link and not (link.startswith(("https://", "http://")) and link.isprintable()):
        raise ValueError("must start with https:// or http://")
    return check_text(link)


class _Description(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    notes: Annotated[str, Field(max_length=10_000), AfterValidator(check_text)] = ""
    owner: Annotated[str, Field(max_length=200), AfterValidator(check_text)] = ""
    link: Annotated[str, Field(max_length=2000), AfterValidator(_check_link)] = ""
    tags: Annotated[
        list[Annotated[str, Field(max_length=_TAG_LENGTH), AfterValidator(check_text)]],
        Field(max_length=_TAGS_MAX),
    ] = Field(default_factory=list)
    meta: Annotated[dict[str, Any], AfterValidator(check_meta)] = Field(default_factory=dict)


def tool_document(
    tool: Tool, versions: Sequence[ToolVersion], states: Mapping[int, State]
) -> dict[str, Any]:
    """A tool as JSON, with its versions in the given order (by number)."""
    return {
        "name": tool.name,
        **{member: getattr(tool, member) for member in DESCRIBING},
        "current_version": tool.current_number,
        "versions": [
            {
                "version": one.number,
                "state": states.get(one.number, State.PUBLISHED).value,
                "digest": one.digest,
                **contract_of(one).model_dump(exclude={"name"}),
                "published_at": iso_exact(one.created_at),
                "published_by": one.created_by or one.created_by_key,
            }
            for one in versions
        ],
    }


def read_tool(path: str, entry: Any) -> ReadTool:
    """Read a tool in the registry's format. Never raises: errors are in the tool's problems."""
    name = name_in(entry)
    if name is None:
        tool = ReadTool(path, "")
        tool.refuse(f"{path}.name: is not a valid tool name")
        return tool
    tool = ReadTool(path, name)
    try:
        members = {member: entry[member] for member in DESCRIBING if member in entry}
        described = _Description.model_validate(members)
        tool.description = {member: getattr(described, member) for member in members}
    except ValidationError as error:
        tool.refuse(f"{path}: {explain(error)}")
    versions = entry.get("versions")
    if not isinstance(versions, list):
        tool.refuse(f"{path}.versions: is not a list of versions")
        return tool
    seen: set[str] = set()
    for index, each in enumerate(versions):
        where = f"{path}.versions[{index}]"
        read = _read_version(where, name, each, tool)
        if read is None:
            continue
        if read.contract.digest in seen:
            tool.refuse(f"{where}: repeats the contract of an earlier version")
        elif tool.versions and read.number <= tool.versions[-1].number:
            tool.refuse(f"{where}.version: must be greater than {tool.versions[-1].number}")
        seen.add(read.contract.digest)
        tool.versions.append(read)
    current = entry.get("current_version", 0)
    numbers = {one.number for one in tool.versions}
    if type(current) is int and (current in numbers or (current == 0 and not versions)):
        tool.current_number = current
    else:
        tool.refuse(f"{path}.current_version: is not one of its versions")
    return tool


def _read_version(path: str, name: str, entry: Any, tool: ReadTool) -> ReadVersion | None:
    if not isinstance(entry, dict):
        tool.refuse(f"{path}: is not a JSON object")
        return None
    number, state = entry.get("version"), entry.get("state", State.PUBLISHED.value)
    if type(number) is not int or not 0 < number < 2**31:
        tool.refuse(f"{path}.version: is not a version number")
        return None
    if state not in State.values:
        tool.refuse(f"{path}.state: must be one of {', '.join(State.values)}")
        return None
    try:
        contract = ToolContract.model_validate({**entry, "name": name})
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False, include_context=False):
            where = ".".join(str(part) for part in problem["loc"])
            tool.refuse(f"{path}.{where}: {problem['msg'].removeprefix('Value error, ')}")
        return None
    if entry.get("digest") not in (None, contract.digest):
        tool.refuse(
            f"{path}.digest: does not match the contract, whose digest is {contract.digest}"
        )
        return None
    origin = {}
    for member in ("published_at", "published_by"):
        if isinstance(entry.get(member), str):
            try:
                origin[member] = check_text(entry[member][:150])
            except ValueError as error:
                tool.refuse(f"{path}.{member}: {error}")
                return None
    return ReadVersion(path, number, contract, State(state), {"version": number, **origin})
