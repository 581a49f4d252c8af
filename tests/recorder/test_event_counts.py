"""What programs do to logging, caches, stances and threads costs no event and doubles none."""

from __future__ import annotations

import logging
import logging.config
import threading

import pytest

pytest.importorskip("torch")

import torch
import torch._dynamo

import compilescope
from compilescope.record.bodies import GraphBreak, GraphCaptured, StanceChanged

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def broken_once(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def counts(run: compilescope.Capture) -> tuple[int, int]:
    """(break events, graphs)"""
    graphs = [body for _, body in run.run.of(GraphCaptured) if body.stage == "dynamo"]
    return run.run.count(GraphBreak), len(graphs)


def test_one_call_counts_once() -> None:
    with compilescope.capture() as run:
        compiled = torch.compile(broken_once, backend="eager")
        compiled(torch.ones(2))
        compiled(torch.ones(2))
    assert counts(run) == (1, 2)
    assert len(run.breaks) == 1


def test_logging_configured_anew() -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)]
    before = [(logger, logger.disabled, logger.level, list(logger.handlers)) for logger in loggers]
    try:
        with compilescope.capture() as run:
            logging.config.dictConfig({"version": 1, "disable_existing_loggers": True})
            torch.compile(broken_once, backend="aot_eager")(torch.ones(2))
        stages = [body.stage for _, body in run.run.of(GraphCaptured)]
    finally:
        root.handlers[:], root.level = handlers, level
        for logger, disabled, own_level, own_handlers in before:
            logger.disabled = disabled
            logger.setLevel(own_level)
            logger.handlers[:] = own_handlers
    assert counts(run) == (1, 2)
    assert stages.count("aot_inference") == 2


def test_reset_in_the_middle_starts_an_epoch() -> None:
    with compilescope.capture() as run:
        for _ in range(3):
            torch.compile(broken_once, backend="eager")(torch.ones(2))
            torch._dynamo.reset()
    assert counts(run) == (3, 6)
    assert len(run.breaks) == 1
    breaks = [(event.epoch, event.compile_id) for event, _ in run.run.of(GraphBreak)]
    # Compile ids start again; with the epoch they are told apart.
    assert len({compile_id for _, compile_id in breaks}) == 1
    assert [epoch for epoch, _ in breaks] == [0, 1, 2]
    assert not run.recompiles


def test_stances() -> None:
    with compilescope.capture() as run:
        compiled = torch.compile(broken_once, backend="eager")
        with torch.compiler.set_stance("force_eager"):
            compiled(torch.ones(2))
        assert counts(run) == (0, 0)
        compiled(torch.ones(2))
        torch.compiler.set_stance("eager_on_recompile")
        compiled(torch.ones(3))
        torch.compiler.set_stance("default")
        compiled(torch.ones(2))
    assert counts(run) == (1, 2)
    assert run.digest.stances == ("force_eager", "eager_on_recompile")
    assert run.run.count(StanceChanged) >= 2


def test_a_stance_is_named_where_it_kept_all_from_compiling() -> None:
    with compilescope.capture() as run, torch.compiler.set_stance("force_eager"):
        torch.compile(broken_once, backend="eager")(torch.ones(2))
    assert "was active: calls under it run eagerly." in run._repr_html_()


def test_threads() -> None:
    def make(number):
        namespace = {"torch": torch}
        body = f"    x = x + {number}\n    torch._dynamo.graph_break()\n    return x"
        exec(f"def f{number}(x):\n{body}", namespace)
        return torch.compile(namespace[f"f{number}"], backend="eager")

    functions = [make(number) for number in range(6)]
    start = threading.Barrier(len(functions))

    def call(function):
        start.wait()
        function(torch.ones(2))

    with compilescope.capture() as run:
        threads = [threading.Thread(target=call, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert run.digest.tool_faults == 0
    # torch 2.11 compiles a function of no file through a wrapper of its own, and breaks there too.
    breaks = [
        (event.thread, body.frame.function)
        for event, body in run.run.of(GraphBreak)
        if body.frame.file == "<string>"
    ]
    assert sorted(name for _, name in breaks) == [f"f{number}" for number in range(6)]
    assert len({thread for thread, _ in breaks}) == 6
    ids = [event.id for event in run.events]
    assert len(ids) == len(set(ids))
