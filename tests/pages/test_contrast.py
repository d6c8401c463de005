"""The colours of tokens.css against WCAG 2.2 AA, in both themes and on every surface."""

import re

import pytest

from config.settings import BASE_DIR

TOKENS = (BASE_DIR / "static" / "css" / "tokens.css").read_text()
COLOURS = {
    name: {"light": light, "dark": dark}
    for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", TOKENS)
}
STATES = ("failed", "violation", "open", "ok")
SURFACES = ("ground", "surface", "sunken", "hover", "accent-soft")
SELECTED_SHARE = 0.12  # of the accent in the ground of the timeline's selected row

TEXT = [(word, on) for word in ("ink", "dim", "accent", *STATES) for on in SURFACES]
TEXT += [(word, f"{state}-soft") for state in STATES for word in (state, "ink", "dim")]
TEXT += [("on-bar", f"{state}-bar") for state in STATES]
TEXT += [("on-accent", "accent")]
SHAPES = [(f"{state}-bar", "surface") for state in STATES]
SHAPES += [("line-field", on) for on in ("surface", "ground")]


def channels(colour: str) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def contrast(one: list[float], other: list[float]) -> float:
    """The contrast ratio of two sRGB colours, 1 to 21. Source: WCAG 2.2, relative luminance."""
    dark, light = sorted(
        sum(
            weight * (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)
            for weight, value in zip((0.2126, 0.7152, 0.0722), colour, strict=True)
        )
        for colour in (one, other)
    )
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_correctly() -> None:
    assert contrast(channels("#000000"), channels("#ffffff")) == pytest.approx(21)
    assert contrast(channels("#777777"), channels("#ffffff")) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_a_contrast_of_4_5_to_1(theme: str) -> None:
    weak = {
        (word, on): round(ratio, 2)
        for word, on in TEXT
        if (ratio := contrast(channels(COLOURS[word][theme]), channels(COLOURS[on][theme]))) < 4.5
    }
    assert weak == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_of_a_selected_row_has_a_contrast_of_4_5_to_1(theme: str) -> None:
    accent, surface = (channels(COLOURS[name][theme]) for name in ("accent", "surface"))
    row = [
        SELECTED_SHARE * above + (1 - SELECTED_SHARE) * below
        for above, below in zip(accent, surface, strict=True)
    ]
    for word in ("ink", "dim", *STATES):
        assert contrast(channels(COLOURS[word][theme]), row) >= 4.5, word


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_and_field_borders_have_a_contrast_of_3_to_1(theme: str) -> None:
    weak = {
        (shape, on): round(ratio, 2)
        for shape, on in SHAPES
        if (ratio := contrast(channels(COLOURS[shape][theme]), channels(COLOURS[on][theme]))) < 3
    }
    assert weak == {}
