"""Which checks a node makes for a value, by the value's kind, and in which order.

The 19 documented keywords come first, in the recorded order, then the others as written.
"""

from dataclasses import dataclass

from tooltrail.guard.keywords import RECORDED, Check
from tooltrail.guard.keywords_later_drafts import OTHERS
from tooltrail.guard.nodes import Node, accepted_kinds


@dataclass(slots=True)
class Plan:
    """The checks of one node, by the kind of value they apply to."""

    accepts: frozenset[str] | None
    type_text: str
    general: list[Check]
    checks: dict[str, list[Check]]


def plan_for(node: Node) -> Plan:
    """Derive a node's checks from its keywords, and store them in the node."""
    ordered = [key for key in RECORDED if key in node.keywords]
    ordered += [key for key in node.keywords if key in OTHERS]
    plan = Plan(
        accepts=accepted_kinds(node.types),
        type_text=" | ".join(node.types or ()),
        general=[],
        checks={kind: [] for kind in ("string", "integer", "number", "array", "object")},
    )
    for keyword in ordered:
        kinds, build = RECORDED.get(keyword) or OTHERS[keyword]
        check = build(node, node.keywords[keyword])
        for kind in kinds or plan.checks:
            plan.checks[kind].append(check)
        if not kinds:
            plan.general.append(check)
    node.plan = plan
    return plan
