"""A hook that fails leaves a ToolFault in the record and no other trace."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from commands import called
from recorder.faults import finding_faults
from recorder.harness import (
    PROGRAMS,
    Ended,
    assert_transparent,
    captured_command,
    finish,
    show,
    start,
)

pytestmark = pytest.mark.torch

pytest.importorskip("torch")

from compilescope.instrument.torchapi import install  # noqa: E402
from compilescope.instrument.torchapi.hook import Hook  # noqa: E402

IN_INDUCTOR = {
    "cudagraphs",
    "cudagraph-logs",
    "ir-before-fusion",
    "ir-after-fusion",
    "kernel-calls",
    "remote-caches",
    "remote-cache-errors",
    "remote-cache-looks",
}
NOT_PASSED = IN_INDUCTOR | {"suppressed-errors"}
"""By passing_hooks.py, in which no frame is given up after an error."""
WHEN_MEASURED = ("time", "profile", "steady")


def _is_on(hook: Hook) -> bool:
    """In this torch: one that stands in for another is left off where torch has that."""
    module = import_module(hook.module)
    other = install.find_target(module, hook.unless) if hook.unless else None
    return install.find_target(module, hook.target) is not None and other is None


HOOKS = {
    h.id
    for h in install.all_hooks()
    if h.only_with not in WHEN_MEASURED and h.module.startswith("torch.") and _is_on(h)
} - NOT_PASSED


@pytest.fixture
def passing_hooks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(PROGRAMS))
    import passing_hooks
    import torch

    torch._dynamo.reset()
    yield passing_hooks
    torch._dynamo.reset()


_plainly: list[tuple[str, str]] = []


@pytest.fixture
def plainly(passing_hooks, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the program prints without us: found once."""
    import torch

    if not _plainly:
        passing_hooks.main()
        _plainly.append(capsys.readouterr())
        torch._dynamo.reset()
    return _plainly[0]


def test_a_fault_in_one_hook(passing_hooks, plainly, monkeypatch, capsys) -> None:
    """A capture for each hook, all around one run of the program: it takes longer than they do."""
    import compilescope

    runs = {}
    with contextlib.ExitStack() as captures:
        for planted in sorted(HOOKS):
            with monkeypatch.context() as patch:
                patch.setattr(install, "discover", finding_faults(planted))
                runs[planted] = captures.enter_context(compilescope.capture())
        passing_hooks.main()
    assert capsys.readouterr() == plainly
    assert len(runs) > 8
    for planted, run in runs.items():
        assert_faulty(run, {planted})


def test_a_fault_in_every_hook(passing_hooks, plainly, monkeypatch, capsys, tmp_path) -> None:
    import compilescope

    monkeypatch.setattr(install, "discover", finding_faults())
    with compilescope.capture(dir=tmp_path) as run:
        passing_hooks.main()
    assert capsys.readouterr() == plainly
    assert_faulty(run, HOOKS)
    run.summary()
    seen = show(tmp_path)
    assert seen["tool_faults"] >= 5 and seen["graphs"] == 0
    assert "PlantedFault" in called("show", "--dir", tmp_path).stdout


@pytest.mark.slow
@pytest.mark.parametrize("planted", sorted(HOOKS))
def test_a_fault_in_one_hook_alone(planted, passing_hooks, plainly, monkeypatch, capsys) -> None:
    import compilescope

    monkeypatch.setattr(install, "discover", finding_faults(planted))
    with compilescope.capture() as run:
        passing_hooks.main()
    assert capsys.readouterr() == plainly
    assert_faulty(run, {planted})


def assert_faulty(run: Any, planted: set[str]) -> None:
    seen = run.digest
    assert {fault.where for fault in seen.faults} == planted
    assert all("PlantedFault" in fault.error for fault in seen.faults)
    assert not seen.cut_short


@pytest.mark.slow
def test_faults_in_inductors_hooks(cxx, passing_hooks, monkeypatch, tmp_path) -> None:
    import torch
    from torch._inductor import config, cudagraph_utils, remote_cache

    import compilescope

    class Nowhere(remote_cache.RemoteCacheBackend):
        def _get(self, key):
            if "slow" in key:
                raise TimeoutError("no answer in time")

        def _put(self, key, data):
            pass

    kind = remote_cache.RemoteFxGraphCache
    monkeypatch.setattr(kind, "backend_override_cls", Nowhere)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(install, "discover", finding_faults())
    x = torch.ones(3)
    # One kernel needs no pool of processes, each of which imports torch.
    with config.patch(compile_threads=1), compilescope.capture(ir=True) as run:
        out = torch.compile(passing_hooks.lowered)(x)
        # On a CPU nothing asks for CUDA graphs, so that one is called as torch would.
        cudagraph_utils.log_cudagraph_skip_and_bump_counter("skipping cudagraphs due to a test")
        # Nor does anything ask for a cache on another machine.
        cache = remote_cache.create_cache("id", False, "", kind.__name__)
        assert cache.get("key") is None
        with pytest.raises(TimeoutError):
            cache.get("slow")
    assert out.tolist() == [2.0, 2.0, 2.0]
    assert {fault.where for fault in run.digest.faults} >= IN_INDUCTOR


@pytest.mark.slow
def test_faults_everywhere_in_a_program(tmp_path: Path, plainly: tuple[str, str]) -> None:
    captured = finish(start(captured_command(tmp_path, "-q", "faulty_hooks.py")))
    # The program is started once, not twice: it prints the same in this process.
    stdout, stderr = plainly
    assert_transparent(Ended(0, stdout.encode(), stderr.encode()), captured)
    seen = show(tmp_path)
    assert seen["tool_faults"] >= 5
    assert seen["graphs"] == 0
    assert "PlantedFault" in called("show", "--dir", tmp_path).stdout
