"""Rules and alerts in words. Pure."""

from decimal import Decimal

from audit.alerts.judging import Value, change
from audit.alerts.maintenance import Maintenance, Recurrence
from audit.alerts.rules import (
    Comparison,
    EventCondition,
    Measure,
    Rule,
    Severity,
    WindowCondition,
)
from audit.show.charts import value_text
from audit.show.figures import counted, money

_SINCE = {Comparison.DAY_BEFORE: "the day before", Comparison.WEEK_BEFORE: "the week before"}


def number(value: float | None, measure: Measure, currency: str = "") -> str:
    """A value of a measure with its unit: `5 %`, `301 ms`, `1,204`, `EUR 4.20`.

    `currency` is that of the tenant's price lists; '' if there is none.
    """
    if value is not None and measure.unit == "money" and currency:
        return money(Decimal(str(value)), currency)
    if value is not None and measure.unit == "share":
        value = value / 100
    return value_text(value, measure.unit)


def limit(condition: WindowCondition, threshold: float | None, currency: str = "") -> str:
    """A threshold with its unit; a currency as in `number`."""
    if threshold is None:
        return "—"
    if condition.compare_with is not Comparison.NUMBER:
        return f"{threshold:+g} %"
    if condition.measure.unit in ("count", "share"):
        return f"{threshold:,g}" + (" %" if condition.measure.unit == "share" else "")
    return number(threshold, condition.measure, currency)


def length(minutes: int) -> str:
    """A length of time: `15 min`, `6 h`, `30 d`."""
    for unit, name in ((1440, "d"), (60, "h")):
        if minutes and minutes % unit == 0:
            return f"{minutes // unit} {name}"
    return f"{minutes} min"


def recurrence(window: Maintenance) -> str:
    """How a maintenance window repeats: `every day by the clock of Europe/Berlin`."""
    if not window.repeats.days:
        return "once"
    how_often = "every day" if window.repeats is Recurrence.DAILY else "every week"
    return f"{how_often} by the clock of {window.time_zone}"


def sentence(condition: WindowCondition | EventCondition, currency: str = "") -> str:
    """A condition in words: `Share of failed calls in 1 h above 5 % (warning) or 20 % (alert)`.

    A currency as in `number`.
    """
    if isinstance(condition, EventCondition):
        return f"{condition.event.label} ({condition.severity.value})"
    steps = [
        f"{limit(condition, threshold, currency)} ({severity.value})"
        for severity in Severity
        if (threshold := condition.threshold(severity)) is not None
    ]
    text = (
        f"{condition.measure.label} in {length(condition.window_minutes)}"
        f" {condition.direction} {' or '.join(steps)}"
    )
    if condition.compare_with is not Comparison.NUMBER:
        text += f", compared with {_SINCE[condition.compare_with]}"
    if condition.for_minutes:
        text += f", for {length(condition.for_minutes)}"
    return text


def notification(rule: Rule) -> str:
    """Whom a rule notifies: `Notifies on call, again every 1 h`; '' for all channels, once."""
    parts = [f"Notifies {', '.join(rule.channels)}"] if rule.channels else []
    if rule.repeat_minutes:
        parts.append(
            f"{'again' if parts else 'Notifies again'} every {length(rule.repeat_minutes)}"
        )
    return ", ".join(parts)


def title(
    name: str, condition: WindowCondition, severity: Severity, value: Value, currency: str = ""
) -> str:
    """What an alert says: `search fails: share of failed calls is 25 % in 1 h, above 20 %`.

    A currency as in `number`.
    """
    threshold = limit(condition, condition.threshold(severity), currency)
    measure = condition.measure.label[0].lower() + condition.measure.label[1:]
    window = length(condition.window_minutes)
    if value.value is None:
        calls = f"no price for {counted(value.unpriced, 'call')}" if value.unpriced else "no calls"
        return f"{name}: {calls} in {window}"
    text = f"{name}: {measure} {number(value.value, condition.measure, currency)} in {window}"
    if condition.compare_with is not Comparison.NUMBER and value.before is not None:
        text += f", {change(value.value, value.before):+,.0f} % of {_SINCE[condition.compare_with]}"
    text += f", {condition.direction} {threshold}"
    return f"{text}; {counted(value.unpriced, 'call')} without a price" if value.unpriced else text
