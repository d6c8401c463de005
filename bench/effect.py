"""How often a version's effect is made up, and how long its p95 takes: `uv run bench/effect.py`.

Draws both sides from one distribution, `--rounds` times, and counts how often the bootstrap
reports that their p95 differs: with α = 0.01, one in a hundred may. Then measures how often it
finds a real difference, and the time of one comparison. Runs in this process, without a database.
"""

import argparse
import math
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from audit.effect.statistics import compare_percentiles
from audit.index import histogram

VALUES = [histogram.middle_us(n) for n in range(histogram.BUCKET_COUNT)]
SHAPES: dict[str, Callable[[random.Random], float]] = {
    "log-normal": lambda rng: math.exp(rng.gauss(12, 1)),
    "exponential": lambda rng: rng.expovariate(1 / 200_000),
    "cache or 1 s": lambda rng: 1_000_000 if rng.random() < 0.06 else 50_000,
}
SIZES = ((30, 300), (30, 1_000), (60, 1_000), (100, 1_000), (150, 1_000), (300, 1_000))


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=500)
    rounds = parser.parse_args().rounds
    print(f"{'no difference':16}" + "".join(f"{a:>7} / {b}" for a, b in SIZES))
    for name, draw in SHAPES.items():
        shares = (_detection_rate(draw, draw, *sizes, rounds) for sizes in SIZES)
        print(
            f"{name:16}"
            + "".join(
                f"{share:>{len(f'{b}') + 10}.1%}"
                for share, (_, b) in zip(shares, SIZES, strict=True)
            )
        )
    slow = SHAPES["log-normal"]
    print("\nlog-normal, 300 and 1,000 calls, slower by")
    for percent in (20, 50, 100):
        rate = _detection_rate(slow, _slower(slow, percent), 300, 1_000, rounds)
        print(f"{percent:>5} %: found in {rate:.0%}")
    print("\none comparison")
    for calls in (1_000, 100_000, 10_000_000):
        counts = _side(slow, random.Random(1), 10_000)
        counts = [count * calls // 10_000 for count in counts]
        began = time.perf_counter()
        compare_percentiles(counts, counts, VALUES, share=0.95, alpha=0.01)
        print(f"{calls:>12,} calls a side: {(time.perf_counter() - began) * 1000:.1f} ms")
    return 0


def _detection_rate(
    before: Callable[[random.Random], float],
    after: Callable[[random.Random], float],
    calls: int,
    calls_after: int,
    rounds: int,
) -> float:
    detected = 0
    for seed in range(rounds):
        rng = random.Random(seed)
        sides = _side(before, rng, calls), _side(after, rng, calls_after)
        interval = compare_percentiles(*sides, VALUES, share=0.95, alpha=0.01)
        detected += interval.excludes_zero
    return detected / rounds


def _slower(
    draw: Callable[[random.Random], float], percent: int
) -> Callable[[random.Random], float]:
    return lambda rng: draw(rng) * (1 + percent / 100)


def _side(draw: Callable[[random.Random], float], rng: random.Random, calls: int) -> list[int]:
    return histogram.histogram(int(draw(rng)) for _ in range(calls))


if __name__ == "__main__":
    sys.exit(main())
