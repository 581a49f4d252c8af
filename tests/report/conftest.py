"""A real browser for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browsing import emptied, page_driver


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    yield from page_driver()


@pytest.fixture
def driver(browser: Any) -> Any:
    """The one browser, without what the tests before left in it."""
    return emptied(browser)
