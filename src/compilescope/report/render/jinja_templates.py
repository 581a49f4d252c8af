"""Draws a template with Jinja where it was changed after `drawn` was generated from it.

`drawn` holds the templates as Python, so that a page need not wait for the import of Jinja.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from compilescope.report.render.safe_html import finalize

FOLDER = Path(__file__).parent / "templates"


@functools.cache
def environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def jinja_drawing(name: str) -> Callable[[Mapping[str, Any]], str]:
    return environment().get_template(f"{name}.html").render
