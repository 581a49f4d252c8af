"""A real browser for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browsing import page_driver


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    yield from page_driver()
