"""Times of a trace page's first paint in Chromium, with an empty cache; used by `pages.py`."""

import statistics

LIMITS = {16: 300.0, 1_000: 1000.0, 10_000: 1000.0}  # ms, by the number of calls in a trace

_HEADS = ("paint, best", "p50", "p95", "limit", "loaded, p50")
_SETTLED_MS = 300
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def paint(url: str, session: str, rounds: int) -> bool:
    """Open traces in Chromium and print; whether the first paints were within the limits.

    `session` is the session cookie of a signed-in user.
    """
    from playwright.sync_api import sync_playwright

    from tests.support.browser import FLAGS, find_chromium

    fine = True
    print(f"\n{'in the browser':30}" + "".join(f"{head:>14}" for head in _HEADS))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        for size, limit in LIMITS.items():
            for is_open in (False, True):
                painted, loaded = [], []
                for n in range(rounds + 1):
                    context = chromium.new_context(viewport={"width": 1440, "height": 810})
                    context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
                    page = context.new_page()
                    if is_open:
                        page.goto(f"{url}/healthz")
                        page.wait_for_timeout(_SETTLED_MS)
                    page.goto(f"{url}/traces/trace-of-{size}", wait_until="load")
                    # wait_for_function needs eval, which the CSP forbids
                    while page.evaluate(_PAINT) is None:
                        page.wait_for_timeout(5)
                    if n:  # the first fills the server's caches
                        painted.append(page.evaluate(_PAINT))
                        loaded.append(page.evaluate(_LOADED))
                    context.close()
                is_slow = is_open and p95(painted) > limit
                fine &= not is_slow
                what = f"a trace of {size:,} calls" + ("" if is_open else ", new window")
                print(
                    f"{what:34}{min(painted):10.0f}{statistics.median(painted):14.0f}"
                    f"{p95(painted):14.0f}{f'{limit:.0f}' if is_open else '':>14}"
                    f"{statistics.median(loaded):14.0f}{'  too slow' if is_slow else ''}"
                )
        chromium.close()
    return fine


def p95(times: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(times, n=20, method="inclusive")[18]
