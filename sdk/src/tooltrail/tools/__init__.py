"""Tools as in the ADK: definition, execution, call ids, registries, artifacts."""

from tooltrail.tools.artifact_tools import ArtifactTool, forge_tools
from tooltrail.tools.artifacts import InMemorySpoolReader, SpooledArtifact, SpoolReader
from tooltrail.tools.canonical import canonical_stringify, compute_call_id
from tooltrail.tools.json_artifact import SpooledJsonArtifact
from tooltrail.tools.markdown_artifact import SpooledMarkdownArtifact
from tooltrail.tools.meta import Registry
from tooltrail.tools.registry import ToolRegistry
from tooltrail.tools.tool import ExecutionContext, Handler, OnCollision, Tool
from tooltrail.tools.toolcall import Media, ToolCall

__all__ = [
    "ArtifactTool",
    "ExecutionContext",
    "Handler",
    "InMemorySpoolReader",
    "Media",
    "OnCollision",
    "Registry",
    "SpoolReader",
    "SpooledArtifact",
    "SpooledJsonArtifact",
    "SpooledMarkdownArtifact",
    "Tool",
    "ToolCall",
    "ToolRegistry",
    "canonical_stringify",
    "compute_call_id",
    "forge_tools",
]
