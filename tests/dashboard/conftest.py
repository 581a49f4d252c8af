"""A dashboard over sample runs, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import samples
from browsing import emptied, page_driver
from dashboard_history import history_home, settle
from dashboard_server import Served, serving


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every shape. Read only: it is shared."""
    home = tmp_path_factory.mktemp("dashboard") / ".compilescope"
    for number, (name, run) in enumerate(samples.RUNS.items()):
        samples.store(run, home, f"{number:06x}-{name.replace('_', '-')}")
    return home


@pytest.fixture(scope="session")
def served(sample_home: Path) -> Iterator[Served]:
    """The dashboard over the sample runs. Tests that write serve a home of their own."""
    with serving(sample_home) as made:
        yield made


@pytest.fixture(scope="session")
def registry(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A dashboard with a folder for notes on graph breaks, which is not there yet."""
    notes = tmp_path_factory.mktemp("noting") / "deep" / "notes"
    with serving(sample_home, notes=notes) as made:
        yield made


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The dashboard over runs of some days. Read only: it is shared."""
    home = history_home(tmp_path_factory.mktemp("history") / ".compilescope")
    with serving(home) as made:
        settle(made)
        yield made


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    yield from page_driver()


@pytest.fixture
def driver(browser: Any) -> Any:
    """The one browser, without what the tests before left in it."""
    return emptied(browser)
