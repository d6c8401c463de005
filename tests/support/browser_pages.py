"""What a page costs and paints in the browser, and pictures of it."""

from playwright.sync_api import Page

MAX_TRANSFER_BYTES = 400_000
"""Bytes of a page with charts, as transferred."""


def shoot(page: Page, name: str, folder: str | None) -> None:
    """Keep pictures of the page, light and dark, wide and narrow, if a folder is given."""
    if not folder:
        return
    for scheme in ("light", "dark"):
        for width in (1440, 390):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png", full_page=True)
    page.set_viewport_size({"width": 1440, "height": 900})


def transferred(page: Page) -> list[int]:
    """The bytes of each answer that the page gets from now on; the list grows."""
    sizes: list[int] = []
    page.on(
        "requestfinished",
        lambda request: sizes.append(
            request.sizes()["responseBodySize"] + request.sizes()["responseHeadersSize"]
        ),
    )
    return sizes


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
