"""The tables as Django models. All are unmanaged: the migrations create them in SQL."""

from audit.models.base import TenantQuerySet
from audit.models.definitions import (
    StoredDefinition,
    StoredDefinitionChange,
    StoredServedDefinition,
)
from audit.models.index import (
    Batch,
    Gap,
    Invocation,
    Producer,
    RejectedEvent,
    Resolution,
    State,
    Trace,
    Violation,
)
from audit.models.ledger import LedgerCheck, LedgerCheckpoint, LedgerKey
from audit.models.preferences import PollingTool, SavedView
from audit.models.retention import Erasure, ErasureCall, ErasureState, LedgerErasure, LegalHold
from audit.models.work import (
    DriftAnalysis,
    PayloadHit,
    PayloadSearch,
    Replay,
    StoredReport,
    StoredReportSchedule,
)

__all__ = [
    "Batch",
    "DriftAnalysis",
    "Erasure",
    "ErasureCall",
    "ErasureState",
    "Gap",
    "Invocation",
    "LedgerCheck",
    "LedgerCheckpoint",
    "LedgerErasure",
    "LedgerKey",
    "LegalHold",
    "PayloadHit",
    "PayloadSearch",
    "PollingTool",
    "Producer",
    "RejectedEvent",
    "Replay",
    "Resolution",
    "SavedView",
    "State",
    "StoredDefinition",
    "StoredDefinitionChange",
    "StoredReport",
    "StoredReportSchedule",
    "StoredServedDefinition",
    "TenantQuerySet",
    "Trace",
    "Violation",
]
