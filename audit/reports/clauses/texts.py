"""The clauses: references, what each asks for in our words, what the record cannot show. Pure.

References only: the texts themselves belong to their publishers. `shows` names figures of
`audit.reports.clauses.figures`.
"""

from dataclasses import dataclass
from typing import Final

AI_ACT: Final = "EU AI Act, Regulation (EU) 2024/1689"
ISO_42001: Final = "ISO/IEC 42001:2023"
SOC_2: Final = "SOC 2, Trust Services Criteria 2017"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause, and what a report says beside it."""

    id: str
    source: str
    reference: str
    topic: str
    asks: str
    """What it asks for, in one sentence of ours."""
    shows: tuple[str, ...]
    """Names of figures."""
    does_not_show: tuple[str, ...]


_OUTSIDE_TOOLS: Final = "What models and agents did without calling a tool."
_UNRECORDED: Final = "Calls of tools that nobody instrumented: they leave no trace here."
_CLASSIFICATION: Final = "Whether the system is a high-risk AI system, and who is its provider."
_ELSEWHERE: Final = "Logs that are kept elsewhere, or under somebody else's control."
_EFFECT: Final = "Whether the people who decided were competent, informed and free to refuse."
_PROCESS: Final = "Procedures, roles and training: they are outside the record."

_KEPT: Final = (
    *("floor_days", "payload_days", "index_days", "oldest_payload", "oldest_call"),
    *("held", "erased_calls"),
)
CLAUSES: Final = (
    Clause(
        "ai-act-12-1",
        AI_ACT,
        "Article 12(1)",
        "Automatic recording",
        "A high-risk system must be able to record events by itself for as long as it is in use.",
        ("started", "recorded_whole", "open", "producers", "lost", "missing", "rejected"),
        (_CLASSIFICATION, _OUTSIDE_TOOLS, _UNRECORDED),
    ),
    Clause(
        "ai-act-12-2-a",
        AI_ACT,
        "Article 12(2)(a)",
        "Events of risk and of change",
        "The events must help to find situations of risk and substantial modifications.",
        ("failed", "violating", "not_run", "published", "unapproved", "alerts"),
        (
            "Whether a failure was a risk (Article 79(1)), or a change a substantial modification.",
            "Changes of models and prompts, unless a call reports them.",
        ),
    ),
    Clause(
        "ai-act-12-2-b",
        AI_ACT,
        "Article 12(2)(b)",
        "Post-market monitoring",
        "The events must serve the provider's monitoring after the system is on the market.",
        ("calls", "agents", "violating", "samples", "sampled_calls"),
        ("The provider's plan for monitoring, and what other deployers see.", _OUTSIDE_TOOLS),
    ),
    Clause(
        "ai-act-12-2-c",
        AI_ACT,
        "Article 12(2)(c)",
        "Monitoring by the deployer",
        "The events must serve the deployer's monitoring of operation under Article 26(5).",
        ("rules", "alerts", "acknowledged", "answered_within", "notified"),
        ("Whether the rules watch for what matters in this use.",),
    ),
    Clause(
        "ai-act-12-3",
        AI_ACT,
        "Article 12(3)",
        "Biometric identification",
        "Remote biometric identification must record at least each use, the database, the matching"
        " input and who verified the result.",
        ("recorded_whole", "approved", "deciding_people"),
        (
            "The reference database and the matching input, unless a tool reports them.",
            "Whether two people verified a result, as Article 14(5) asks.",
        ),
    ),
    Clause(
        "ai-act-19-1",
        AI_ACT,
        "Article 19(1)",
        "Logs kept by the provider",
        "Providers keep the logs under their control for at least six months, or longer if the"
        " purpose or other law asks for it.",
        (
            "floor_days",
            "payload_days",
            "index_days",
            "oldest_payload",
            "oldest_call",
            "held",
            "erased_calls",
        ),
        (_ELSEWHERE, "Which period the purpose of the system or other law asks for."),
    ),
    Clause(
        "ai-act-26-2",
        AI_ACT,
        "Article 26(2)",
        "Human oversight",
        "Deployers give oversight to people with the competence, training and authority for it.",
        ("requests", "approved", "refused", "self_approved", "deciding_people", "waited"),
        (_EFFECT, "Oversight outside approvals of tool calls."),
    ),
    Clause(
        "ai-act-26-5",
        AI_ACT,
        "Article 26(5)",
        "Monitoring of operation",
        "Deployers monitor operation, and suspend use and inform others of risks and serious"
        " incidents.",
        ("rules", "alerts", "acknowledged", "unresolved", "incidents", "notified"),
        (
            "Whether providers, distributors and authorities were informed, and when.",
            "Whether use was suspended.",
        ),
    ),
    Clause(
        "ai-act-26-6",
        AI_ACT,
        "Article 26(6)",
        "Logs kept by the deployer",
        "Deployers keep the logs under their control for at least six months, unless other law says"
        " otherwise.",
        (
            "floor_days",
            "payload_days",
            "index_days",
            "oldest_payload",
            "oldest_call",
            "held",
            "erased_calls",
        ),
        (_ELSEWHERE, "Whether law on personal data asks for a shorter time."),
    ),
    Clause(
        "iso-42001-a-6-2-8",
        ISO_42001,
        "Annex A, A.6.2.8",
        "Recording of event logs",
        "The organisation decides in which phases of the life cycle event logs are kept, at least"
        " while the system is in use.",
        ("started", "recorded_whole", "environments", "signed", "unsigned", "checked", "lost"),
        (
            "The decision for which phases logs are kept, and why.",
            _UNRECORDED,
        ),
    ),
    Clause(
        "soc-2-cc7-1",
        SOC_2,
        "CC7.1",
        "Detection of changes",
        "The entity detects changes of configuration that bring new weaknesses, and known"
        " weaknesses.",
        ("published", "unapproved", "definition_changes", "checked"),
        ("Weaknesses of the tools themselves, and changes outside tools and their definitions.",),
    ),
    Clause(
        "soc-2-cc7-2",
        SOC_2,
        "CC7.2",
        "Monitoring for anomalies",
        "The entity monitors its components for anomalies and judges whether they are security"
        " events.",
        ("rules", "alerts", "failed", "not_run", "streams", "lost", "missing"),
        ("Anomalies that no rule watches for.", _OUTSIDE_TOOLS),
    ),
    Clause(
        "soc-2-cc7-3",
        SOC_2,
        "CC7.3",
        "Evaluation of events",
        "The entity evaluates security events and acts on those that endanger its objectives.",
        ("acknowledged", "answered_within", "unresolved", "payload_access", "people_with_access"),
        ("How an event was evaluated, beyond the notes of who acknowledged it.", _PROCESS),
    ),
    Clause(
        "soc-2-cc7-4",
        SOC_2,
        "CC7.4",
        "Response to incidents",
        "The entity answers incidents by a defined programme: it contains, mends and communicates.",
        ("incidents", "holds_set", "evidence", "notified", "not_notified"),
        ("Whether an incident was contained and mended.", _PROCESS),
    ),
    Clause(
        "soc-2-cc7-5",
        SOC_2,
        "CC7.5",
        "Recovery",
        "The entity restores what an incident damaged, and learns from it.",
        ("signed", "witnessed", "checked", "unresolved"),
        (
            "Restores and tests of backups. The record shows only whether the ledger continued.",
            _PROCESS,
        ),
    ),
)
"""In the order of the report."""

SOURCES: Final = tuple(dict.fromkeys(clause.source for clause in CLAUSES))
"""The laws, standards and criteria, in their order."""
LIMITS: Final = (
    "Whether the figures meet a clause is for the reader to judge.",
    "This report gives no legal advice, and no opinion of an auditor.",
    "The record has calls of tools and decisions about them. It cannot show what was never sent.",
    "Figures are of the range and the moment of the report, and are stated by the server.",
    "The evidence bundle of the report has the events to recompute them.",
)
"""What holds for all clauses."""
