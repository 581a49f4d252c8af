"""Capture is held to the truth about every program of the zoo: no more, no less."""

from __future__ import annotations

import contextlib
import io
import logging
import runpy
import warnings
from functools import cache
from pathlib import Path

import pytest

import compilescope
from compilescope.knowledge.analysis.digest import Digest
from zoo.truth import Truth, all_programs, read_truth

pytestmark = pytest.mark.torch

_CAUSES = {"recompile-limit": "recompile limit", "dispatch-mode": "dispatch mode"}


@pytest.fixture(params=all_programs(), ids=lambda path: path.stem)
def seen(request: pytest.FixtureRequest) -> tuple[Truth, Digest]:
    """The program's truth, and what capture saw of it."""
    return _seen(request.param)


@cache
def _seen(path: Path) -> tuple[Truth, Digest]:
    """Once, in whatever order the tests run."""
    import torch

    torch._dynamo.reset()
    level = logging.getLogger("torch").level
    logging.getLogger("torch").setLevel(logging.ERROR)
    quiet = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            warnings.catch_warnings(),
            compilescope.capture() as run,
        ):
            warnings.simplefilter("ignore")
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as error:  # pytest would give up on the tests that follow.
        pytest.fail(f"{path.name} ended: {error}")
    finally:
        logging.getLogger("torch").setLevel(level)
    return read_truth(path), run.digest


def test_break_sites(seen: tuple[Truth, Digest]) -> None:
    truth, digest = seen
    found = {(site.line, site.column, site.gb_type) for site in digest.sites}
    assert found == {(b.line, b.column, b.gb_type) for b in truth.breaks}
    assert all(site.file == str(truth.path) for site in digest.sites)
    assert len(digest.sites) == len(truth.breaks)


def test_categories(seen: tuple[Truth, Digest]) -> None:
    truth, digest = seen
    assert {(site.line, site.category) for site in digest.sites} == truth.categories
    assert all(site.why and site.remedy for site in digest.sites)


def test_eager_frames(seen: tuple[Truth, Digest]) -> None:
    truth, digest = seen
    found = {
        (
            frame.line,
            frame.reason if frame.cause == "graph-break" else _CAUSES.get(frame.cause, frame.cause),
            frame.rest_only,
        )
        for frame in digest.eager_frames
    }
    assert found == {(e.line, e.root, e.rest) for e in truth.eager}
    assert digest.unexplained_skips == ()


def test_recompiles(seen: tuple[Truth, Digest]) -> None:
    truth, digest = seen
    found = {
        (frame.resumed_at or frame.line, frame.count, c.subject, c.expected, c.actual)
        for frame in digest.recompiles
        for c in frame.guards
    }
    expected = {(r.line, r.count, r.guard, r.expected, r.actual) for r in truth.recompiles}
    assert found == expected
    assert {frame.line for frame in digest.recompiles if frame.limit_hit} == truth.limits


def test_failures(seen: tuple[Truth, Digest]) -> None:
    truth, digest = seen
    found = {(f.line, f.error, f.column, f.gb_type) for f in digest.failures if not f.suppressed}
    assert found == {(f.line, f.exc_type, f.column, f.gb_type) for f in truth.failures}


def test_graphs_and_health(seen: tuple[Truth, Digest]) -> None:
    truth, digest = seen
    assert truth.graphs is None or digest.graphs == truth.graphs
    assert (digest.tool_faults, digest.unread, digest.cut_short) == (0, 0, False)
    assert digest.unavailable == ()


def test_the_zoo_is_large_enough() -> None:
    assert len(all_programs()) >= 40
