"""Looks into remote caches and into Triton's own: hits, misses, and why one gave no answer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope.knowledge.analysis.cache_changes import CacheComparison, compare_caches  # noqa: E402
from compilescope.record.bodies import CacheAccess  # noqa: E402
from compilescope.record.run import Run, read_run  # noqa: E402
from recorder.harness import captured_command, finish, start  # noqa: E402


def _looks(run: Run) -> list[tuple[str, str, str]]:
    return [(body.cache, body.outcome, body.reason) for _, body in run.of(CacheAccess)]


def _made(name: str) -> Any:
    from torch._inductor import remote_cache

    given = {"is_fbcode": False, "fb_cache_cls": f"Fb{name}", "oss_cache_cls": name}
    return remote_cache.create_cache("id", **given)


def test_a_cache_that_cannot_be_used_says_why() -> None:
    if find_spec("redis") is not None:
        pytest.skip("redis is installed, so torch makes the cache")
    with compilescope.capture() as seen:
        assert _made("RemoteAOTAutogradCache") is None
    reason = "the package redis is not installed"
    assert _looks(seen.run) == [("remote_aot_autograd", "bypass", reason)]
    assert not seen.digest.faults


def test_hits_misses_and_errors_of_a_remote_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a store of our own, in the place that torch has for it."""
    from torch._inductor import remote_cache

    store: dict[str, bytes] = {}

    class Store(remote_cache.RemoteCacheBackend):
        def _get(self, key: str) -> bytes | None:
            if "wrong" in key:
                raise TimeoutError("no answer in time")
            return store.get(key)

        def _put(self, key: str, data: bytes) -> None:
            store[key] = data

    kind = remote_cache.RemoteFxGraphCache
    monkeypatch.setattr(kind, "backend_override_cls", Store)
    with compilescope.capture() as seen:
        cache = _made("RemoteFxGraphCache")
        assert cache.get("key") is None
        cache.put("key", {"data": 1})
        assert cache.get("key") == {"data": 1}
        with pytest.raises(TimeoutError):
            cache.get("wrong")
    assert _looks(seen.run) == [
        ("remote_fx_graph", "miss", ""),
        ("remote_fx_graph", "hit", ""),
        ("remote_fx_graph", "bypass", "TimeoutError: no answer in time"),
    ]
    assert not seen.digest.faults
    assert seen.digest.caches["remote_fx_graph"].hits == 1


def _compared(before: Run, after: Run) -> CacheComparison:
    found = compare_caches(before, after)
    assert found is not None
    return found


Ran = Callable[..., Run]


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """A program, run with these variables and caches that begin empty."""

    def run(text: str, **env: str) -> Run:
        (tmp_path / "program.py").write_text(text)
        home = tmp_path / "runs"
        known = set(home.iterdir()) if home.exists() else set()
        shutil.rmtree(tmp_path / "inductor", ignore_errors=True)
        env["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "inductor")
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = finish(start(captured_command(home, "-q", str(tmp_path / "program.py")), env=env))
        assert done.status == 0, done
        [folder] = [each for each in home.iterdir() if each not in known and each.is_dir()]
        return read_run(folder)

    return run


_KERNEL = """
import os
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
source = ASTSource(scale, types, {"BLOCK": int(os.environ.get("BLOCK", 64))})
target = GPUTarget("cuda", int(os.environ.get("ARCH", 90)), 32)
triton.compile(source, target=target, options={"num_warps": int(os.environ.get("WARPS", 4))})
"""


@pytest.mark.slow
def test_tritons_cache_and_the_part_of_its_key(tmp_path: Path, ran: Ran) -> None:
    """Triton compiles for a GPU that is not there."""
    if find_spec("triton") is None:
        pytest.skip("this torch comes without Triton")
    folder = {"TRITON_CACHE_DIR": str(tmp_path / "triton")}
    cold = ran(_KERNEL, **folder)
    assert _looks(cold) == [("triton", "miss", "")]
    assert _looks(ran(_KERNEL, **folder)) == [("triton", "hit", "")]

    def parts(later: Run) -> set[tuple[str, str]]:
        (missed,) = _compared(cold, later).missed
        assert (missed.why, missed.function) == ("key", "scale")
        return {(part.kind, part.name) for part in missed.parts}

    assert parts(ran(_KERNEL, WARPS="8", **folder)) == {
        ("configuration", "triton_options[num_warps]")
    }
    assert parts(ran(_KERNEL, BLOCK="128", **folder)) == {("inputs", "triton_constants[3]")}
    assert ("device", "triton_target") in parts(ran(_KERNEL, ARCH="80", **folder))
    edited = ran(_KERNEL.replace("* 2", "* 3"), **folder)
    assert parts(edited) == {("source", "triton_source")}
    other = ran(_KERNEL, DISABLE_LLVM_OPT="1", **folder)
    assert {kind for kind, _ in parts(other)} == {"environment"}
    (absent,) = _compared(cold, ran(_KERNEL, TRITON_CACHE_DIR=str(tmp_path / "other"))).missed
    assert absent.why == "absent"


_COMPILED = """
import torch

@torch.compile
def f(x):
    return (x.sin() + 1).sum(-1)

with torch.no_grad():
    f(torch.ones(4, 8))
"""


@pytest.fixture
def redis_port(tmp_path: Path) -> Iterator[int]:
    server = shutil.which("redis-server")
    if server is None:
        pytest.skip("there is no redis-server")
    if find_spec("redis") is None:
        pytest.skip("the package redis is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as there:
            if there.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield port
    process.terminate()
    process.wait()


@pytest.mark.slow
def test_real_runs_with_one_redis(cxx: None, redis_port: int, ran: Ran) -> None:
    """Each begins with empty folders: what is found comes from the server."""
    remote = {
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "1",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "1",
        "TORCHINDUCTOR_REDIS_PORT": str(redis_port),
    }
    cold = ran(_COMPILED, **remote)
    assert {"remote_fx_graph", "remote_aot_autograd"} <= {cache for cache, _, _ in _looks(cold)}
    assert {outcome for _, outcome, _ in _looks(cold)} == {"miss"}
    warm = _compared(cold, ran(_COMPILED, **remote))
    assert warm.hits[1] == warm.lookups[1] and not warm.missed
    wider = _compared(cold, ran(_COMPILED.replace("4, 8", "4, 9"), **remote))
    assert {each.cache for each in wider.missed} >= {"remote_fx_graph", "remote_aot_autograd"}
    parts = {(part.kind, part.name) for each in wider.missed for part in each.parts}
    assert ("inputs", "example_inputs[0]") in parts
    gone = ran(_COMPILED, **{**remote, "TORCHINDUCTOR_REDIS_PORT": "1"})
    reasons = {reason for cache, _, reason in _looks(gone) if cache.startswith("remote")}
    assert reasons == {"Redis cannot be reached"}
