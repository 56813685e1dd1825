"""What all HTML files share."""

import re
from pathlib import Path

import pytest

import regard
from regard.texts import LANGUAGE_TAGS, LANGUAGES
from regard.views.html import (
    DARK,
    LIGHT,
    fill,
    html_document,
    theme_of_choice,
    theme_of_system,
)

SOURCE = Path(regard.__file__).parent


def test_both_themes_have_the_same_colours():
    assert LIGHT.keys() == DARK.keys()
    assert all(light != dark for light, dark in zip(LIGHT.values(), DARK.values()))


@pytest.mark.parametrize("theme", [theme_of_choice, theme_of_system])
def test_a_theme_has_every_colour_twice(theme):
    text = theme()
    assert all(text.count(f"--{name}: ") == 2 for name in LIGHT)
    assert text.count("{") == text.count("}")


def test_every_variable_that_a_style_uses_is_defined():
    own = {
        "own",
        "on",
        "style",
        "share",
        "hue",
        "weight",
        "heads",
        "bar",
        "beside",
        "likely",
        "colour",
        "size",
    }  # set where they are used
    for file in SOURCE.rglob("*.css"):
        used = set(re.findall(r"var\(--(\w+)", file.read_text(encoding="utf-8")))
        assert used <= {*LIGHT, "text", *own}, file


def test_every_language_has_a_tag():
    assert set(LANGUAGE_TAGS) == set(LANGUAGES)


def test_a_document_escapes_its_title_and_attributes():
    text = html_document("</title><script>", "", root={"data-first": '"><b>'}, body_class="a")
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in text
    assert '<html lang="en" data-first="&quot;&gt;&lt;b&gt;">' in text
    assert '<body class="a">' in text


def test_a_skeleton_without_a_place():
    with pytest.raises(AssertionError, match="needs each of these once"):
        fill("<p></p>", {"<b>": ""})


def test_text_has_enough_contrast():
    """At least 4.5:1, as WCAG asks of text."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for theme in (LIGHT, DARK):
        for name in ("ink", "soft", "faint", "accent", "error"):
            for paper in ("paper", "raised", "wash"):
                low, high = sorted((luminance(theme[name]), luminance(theme[paper])))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (name, paper)
