"""What the SVG pictures share: colours, numbers as texts, templates."""

from __future__ import annotations

import functools

import jinja2

from .places import folder

# Okabe and Ito's colours, which differ for every kind of colour vision, without black and yellow, dark and light in
# turn, so that they stand on either background; with each the colour of a number on it.
COLOURS = (
    ("#0072b2", "#ffffff"),
    ("#e69f00", "#14171c"),
    ("#009e73", "#14171c"),
    ("#cc79a7", "#14171c"),
    ("#d55e00", "#14171c"),
    ("#56b4e9", "#14171c"),
)


@functools.cache
def template(name: str) -> jinja2.Template:
    """A template of `templates/`, every text in it escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def fixed(number: float) -> str:
    """At most two decimals, no exponent, no minus before zero."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
