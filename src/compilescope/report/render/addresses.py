"""Where a text may lead: pages of the web, files, and the dashboard's own pages."""

from __future__ import annotations

import re

_SCHEMES = ("https://", "http://", "file:///")
_OWN = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""Browsers read `//` and `/\\` as another host, and pass over tabs and line breaks between."""


def is_outside(url: str) -> bool:
    """Anyone's: it can be followed from anywhere."""
    return url.startswith(_SCHEMES)


def is_address(url: str) -> bool:
    """What a page may link to: anyone's, or one of the server that shows the page."""
    return is_outside(url) or _OWN.fullmatch(url) is not None
