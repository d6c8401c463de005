"""Attribute sampling: how many calls an auditor examines, and what errors in them mean.

Exact: the hypergeometric distribution of a population, and the binomial one of an endless
population, in whole numbers. Rates are in hundredths of a percent: 500 is 5 %. The sizes and limits
of an endless population are those of the tables A-1 to A-4 of the AICPA's Audit Guide "Audit
Sampling" (2017).
"""

from dataclasses import dataclass
from math import comb

WHOLE = 10_000
"""100 % in hundredths of a percent."""
SIZE_MAX = 2_000
"""Calls of a sample."""


class NoSizeError(ValueError):
    """No sample of up to `SIZE_MAX` calls is enough. The message says why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an auditor wants to be able to say of the calls that do not conform: the errors."""

    confidence: int
    """How sure to be: 9500 for 95 %, a risk of overreliance of 5 %."""
    tolerable: int
    """The rate of errors from which the control does not work."""
    expected: int = 0
    """The rate of errors that is expected; less than the tolerable one."""

    @property
    def problem(self) -> str:
        """What is wrong with it; '' if nothing is."""
        if not 5_000 <= self.confidence < WHOLE:
            return "The confidence must be at least 50 % and less than 100 %."
        if not 0 < self.tolerable <= WHOLE // 2:
            return "The tolerable rate must be more than 0 % and at most 50 %."
        if not 0 <= self.expected < self.tolerable:
            return "The expected rate must be less than the tolerable rate."
        return ""


def size_for(plan: Plan, population: int | None = None) -> tuple[int, int]:
    """How many calls to draw, and the number of errors that the plan expects among them.

    The smallest sample that would find more errors than expected, with the plan's confidence, if
    the population had as many as are tolerable. `population` is its number of calls; None: it has
    no end. Raises NoSizeError.
    """
    tolerable = 0 if population is None else -(-population * plan.tolerable // WHOLE)
    allowed, size = 0, 1
    while True:
        smallest = _smallest(plan, population, tolerable, allowed, size)
        if smallest is None:
            if population is not None and population <= SIZE_MAX:
                return population, min(population, -(-population * plan.expected // WHOLE))
            raise NoSizeError(
                f"More than {SIZE_MAX:,} calls would be needed: the expected rate is too close to"
                " the tolerable rate."
            )
        size = smallest
        if size * plan.expected <= allowed * WHOLE:
            return size, allowed
        allowed += 1


def upper_limit(confidence: int, errors: int, size: int, population: int) -> int:
    """The largest number of errors in a population that is plausible: the upper limit.

    With `confidence` (hundredths of a percent) there are no more, if `errors` of `size` drawn calls
    are errors.
    """
    low, high = errors, population - (size - errors)
    while low < high:
        middle = (low + high + 1) // 2
        if _is_rare(confidence, errors, size, population, middle):
            high = middle - 1
        else:
            low = middle
    return low


def upper_rate(confidence: int, errors: int, size: int) -> int:
    """The upper limit of an endless population, in hundredths of a percent, rounded up."""
    low, high = 0, WHOLE
    while low < high:
        middle = (low + high) // 2
        if _is_rare_rate(confidence, errors, size, middle):
            high = middle
        else:
            low = middle + 1
    return low


def _smallest(
    plan: Plan, population: int | None, tolerable: int, allowed: int, low: int
) -> int | None:
    """The smallest size from `low` on with which `allowed` errors are rare; None: there is none."""

    def is_enough(size: int) -> bool:
        if population is None:
            return _is_rare_rate(plan.confidence, allowed, size, plan.tolerable)
        return _is_rare(plan.confidence, allowed, size, population, tolerable)

    high = SIZE_MAX if population is None else min(SIZE_MAX, population)
    low = max(low, allowed + 1)
    if low > high or not is_enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _is_rare(confidence: int, errors: int, size: int, population: int, bad: int) -> bool:
    """Whether at most `errors` of the calls are found with a chance of 1 - confidence or less.

    `size` calls are drawn of a population of which `bad` are errors.
    """
    good = population - bad
    least = max(0, size - good)
    ways = total = 0
    if least <= errors:
        ways = total = comb(bad, least) * comb(good, size - least)
    for drawn in range(least, min(errors, bad, size)):
        ways = ways * (bad - drawn) * (size - drawn)
        ways //= (drawn + 1) * (good - size + drawn + 1)
        total += ways
    return total * WHOLE <= (WHOLE - confidence) * comb(population, size)


def _is_rare_rate(confidence: int, errors: int, size: int, rate: int) -> bool:
    if rate == WHOLE:
        return errors < size
    ways: int = (WHOLE - rate) ** size
    total = ways
    for errors_drawn in range(min(errors, size)):
        ways = ways * rate * (size - errors_drawn) // ((errors_drawn + 1) * (WHOLE - rate))
        total += ways
    certain: int = WHOLE**size
    return total * WHOLE <= (WHOLE - confidence) * certain
