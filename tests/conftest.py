"""Shared fixtures. Unmarked tests need no torch; the marks say what the others need."""

from __future__ import annotations

import atexit
import compileall
import functools
import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from compilescope.base.processes import deadline

# The same examples in every run: a verdict is the code's, not the dice's. `--hypothesis-profile
# default` draws others.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same")

# What the tests start is no user's program: it leaves no run where it happens to be started.
os.environ["COMPILESCOPE_AUTO_RUN"] = "0"

# A pool of compile workers imports torch once more, for the one kernel that a test compiles.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

# Nor is the user's own state touched, such as the secret that recorded runs are sealed with.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="compilescope-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

HERE = Path(__file__).parent
# Tests import their own helpers (`zoo.truth`, `builders`) by name, wherever pytest was started.
sys.path.insert(0, str(HERE))
# And what only maintainers run.
sys.path.insert(1, str(HERE.parent / "tools"))

# A shell starts background jobs with Ctrl-C ignored, and every child would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


SOURCES = HERE.parent / "src" / "compilescope"
# Where an environment forbids bytecode, every process here would compile every plugin anew. What
# is imported up to the first test may be kept; tests write one program twice within a second.
_FORBIDDEN = sys.dont_write_bytecode
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    helped = "only tests that need neither torch nor a browser nor another process"
    parser.addoption("--quick", action="store_true", help=helped)


def pytest_configure(config: pytest.Config) -> None:
    """Hundreds of children import the tool: a fifth of their time is compiling it otherwise."""
    if not hasattr(config, "workerinput"):
        # Never imported.
        data = re.compile(r"/((registry|rules/\w+|fixes/\w+)/examples|lessons|programs)/")
        compileall.compile_dir(SOURCES, rx=data, quiet=2, workers=0)


def pytest_collection_finish() -> None:
    sys.dont_write_bytecode = _FORBIDDEN


_HEAVY_MARKS = ("torch", "slow", "browser", "ray", "gpu")
# What a file says that imports torch or starts processes, by itself or by a helper.
_HEAVY = re.compile(
    r"^(?:import|from) (?:torch|subprocess|multiprocessing|commands|harness|dashboard_server)\b"
    rf"|^pytestmark = .*\b(?:{'|'.join(_HEAVY_MARKS)})\b|importorskip\(\"torch\"\)",
    re.MULTILINE,
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--quick") or not collection_path.match("test_*.py"):
        return None
    return _is_heavy(collection_path) or None


@functools.cache
def _is_heavy(path: Path) -> bool:
    return bool(_HEAVY.search(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="module", autouse=True)
def without_what_ray_left() -> Iterator[None]:
    """Ray sets variables in the process that starts it, where they stay: a program that is started
    by a later file would run under others than the warm processes that are there already."""
    before = {name for name in os.environ if name.startswith("RAY_")}
    yield
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        if name not in before:
            del os.environ[name]


_modules_at_freeze, _tests_since_freeze = 300, 0


def pytest_runtest_setup() -> None:
    """What walks all objects, a full collection or a capture that begins, would walk all of torch
    again and again: modules are there to stay, and so is what tests leave in caches."""
    global _modules_at_freeze, _tests_since_freeze
    _tests_since_freeze += 1
    grown = len(sys.modules) > _modules_at_freeze + 400
    if grown or (_tests_since_freeze > 40 and "torch._dynamo" in sys.modules):
        gc.collect()
        gc.freeze()
        _modules_at_freeze, _tests_since_freeze = len(sys.modules), 0
    _skip_guard_timing()


_guards_are_timed = True


def _skip_guard_timing() -> None:
    """Torch empties the processor's cache at each compilation, to log how long its guards take.

    That is a third of what compiling a small program costs, and no test in this process reads the
    figure. Programs in processes of their own are timed as ever.
    """
    global _guards_are_timed
    if _guards_are_timed and "torch._dynamo.guards" in sys.modules:
        from compilescope.instrument.torchapi.compilation.settings import skip_guard_timing

        skip_guard_timing()
        _guards_are_timed = False


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # Plugins that look around at the end see everything again.


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        light = [item for item in items if not any(map(item.get_closest_marker, _HEAVY_MARKS))]
        config.hook.pytest_deselected(items=set(items) - set(light))
        items[:] = light
    for item in items:
        if item.get_closest_marker("gpu") and not _has_gpu():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture
def cxx() -> None:
    """For tests of Inductor itself."""
    if not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no C++ compiler for Inductor")


@pytest.fixture(autouse=True)
def nothing_survives() -> Iterator[None]:
    """No hook, no import watcher and no changed torch config outlives a test."""
    before = _dynamo_config()
    # After a call of `main` the time limits of this process would count from its start.
    deadline._begun = None
    yield
    if "compilescope.instrument.torchapi.install" in sys.modules:
        from compilescope.instrument.torchapi.install import _AfterImport

        assert not [f for f in sys.meta_path if isinstance(f, _AfterImport)]
        assert _wrapped_targets() == []
    if before is not None:
        assert _dynamo_config() == before


def _dynamo_config() -> dict[str, object] | None:
    if "torch._dynamo.config" not in sys.modules:
        return None
    return sys.modules["torch._dynamo.config"].get_config_copy()


def _wrapped_targets() -> list[str]:
    from compilescope.instrument.torchapi.install import all_hooks, find_target

    wrapped = []
    for hook in all_hooks():
        module = sys.modules.get(hook.module)
        found = find_target(module, hook.target) if module is not None else None
        if found is not None and found[2].__code__.co_name == "wrapper":
            wrapped.append(hook.id)
    return wrapped
