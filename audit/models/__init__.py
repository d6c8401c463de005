"""The tables as Django models. All are unmanaged: the migrations create them in SQL."""

from audit.models.alerts import Alert, AlertRule, AlertState, AlertTrial, MaintenanceWindow
from audit.models.archive import Archive, ArchiveSegment
from audit.models.base import TenantQuerySet
from audit.models.definitions import (
    StoredDefinition,
    StoredDefinitionChange,
    StoredServedDefinition,
)
from audit.models.delivery import AlertChannel, AlertDelivery, ChannelKind, DeliveryState
from audit.models.incidents import Incident
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
from audit.models.ledger import (
    LedgerCheck,
    LedgerCheckpoint,
    LedgerKey,
    WitnessAnswer,
    WitnessOutcome,
)
from audit.models.notes import About, Note, NoteState
from audit.models.preferences import Board, PageChoice, PollingTool, SavedView
from audit.models.prices import PriceList, UnitPath
from audit.models.regression import RegressionCase, RegressionSet
from audit.models.retention import (
    Erasure,
    ErasureCall,
    ErasureState,
    FloorRequest,
    FloorState,
    LedgerErasure,
    LegalHold,
)
from audit.models.samples import Conclusion, Sample, SampledCall, SamplePart, SampleState
from audit.models.sharing import ShareLink
from audit.models.streams import Stream, StreamFormat, StreamOf, StreamWay
from audit.models.work import (
    ArgumentComparison,
    DriftAnalysis,
    McpUse,
    PayloadHit,
    PayloadSearch,
    Replay,
    StoredReport,
    StoredReportSchedule,
)

__all__ = [
    "About",
    "Alert",
    "AlertChannel",
    "AlertDelivery",
    "AlertRule",
    "AlertState",
    "AlertTrial",
    "Archive",
    "ArchiveSegment",
    "ArgumentComparison",
    "Batch",
    "Board",
    "ChannelKind",
    "Conclusion",
    "DeliveryState",
    "DriftAnalysis",
    "Erasure",
    "ErasureCall",
    "ErasureState",
    "FloorRequest",
    "FloorState",
    "Gap",
    "Incident",
    "Invocation",
    "LedgerCheck",
    "LedgerCheckpoint",
    "LedgerErasure",
    "LedgerKey",
    "LegalHold",
    "MaintenanceWindow",
    "McpUse",
    "Note",
    "NoteState",
    "PageChoice",
    "PayloadHit",
    "PayloadSearch",
    "PollingTool",
    "PriceList",
    "Producer",
    "RegressionCase",
    "RegressionSet",
    "RejectedEvent",
    "Replay",
    "Resolution",
    "Sample",
    "SamplePart",
    "SampleState",
    "SampledCall",
    "SavedView",
    "ShareLink",
    "State",
    "StoredDefinition",
    "StoredDefinitionChange",
    "StoredReport",
    "StoredReportSchedule",
    "StoredServedDefinition",
    "Stream",
    "StreamFormat",
    "StreamOf",
    "StreamWay",
    "TenantQuerySet",
    "Trace",
    "UnitPath",
    "Violation",
    "WitnessAnswer",
    "WitnessOutcome",
]
