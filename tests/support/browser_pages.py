"""What a page costs and paints in the browser."""

from playwright.sync_api import Page

MAX_TRANSFER_BYTES = 400_000
"""Bytes of a page with charts, as transferred."""


def chart_colours(page: Page, chart: str) -> int:
    """How many different colours a chart's canvas shows."""
    colours: int = page.evaluate(
        """(id) => {
            const canvas = document.querySelector(`#chart-${id} canvas`);
            if (!canvas) return 0;
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            const seen = new Set();
            for (let at = 0; at < data.length; at += 4) {
                if (data[at + 3] === 255) seen.add(data.slice(at, at + 3).join());
            }
            return seen.size;
        }""",
        chart,
    )
    return colours
