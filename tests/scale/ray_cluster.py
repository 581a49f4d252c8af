"""A real Ray cluster of several nodes on this machine, for tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

TESTS = Path(__file__).parent.parent
_STORE = 80 << 20


class TestCluster:
    """A head without CPUs, and worker nodes."""

    __test__ = False

    def __init__(self, temporary: str) -> None:
        import ray
        from ray.cluster_utils import Cluster

        # Ray 2.60 notes the cluster's address in this folder, which it makes for `temp_dir` alone.
        Path(ray._common.utils.get_default_ray_temp_dir()).mkdir(parents=True, exist_ok=True)
        head = {"num_cpus": 0, "object_store_memory": _STORE, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head | {"temp_dir": temporary})
        self.address: str = self._cluster.address
        self._joined: list[subprocess.Popen[bytes]] = []

    def add(self, cpus: int = 2, **more: Any) -> Any:
        return self._cluster.add_node(num_cpus=cpus, object_store_memory=_STORE, **more)

    def join(self, python: Path, cpus: int = 2) -> None:
        """A node of another Python environment. Two can't start here at once."""
        before = self.alive()
        command = [str(python), "-m", "ray.scripts.scripts", "start", "--block"]
        command += [f"--address={self.address}", f"--num-cpus={cpus}"]
        command += [f"--object-store-memory={_STORE}", "--min-worker-port=0", "--max-worker-port=0"]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._joined.append(process)
        wait_for(lambda: self.alive() > before)

    def alive(self) -> int:
        """Nodes, the head among them."""
        found = self._cluster.global_state.node_table()
        return sum(1 for each in found if each["Alive"])

    def kill(self, node: Any) -> None:
        """As if its machine lost power."""
        self._cluster.remove_node(node, allow_graceful=False)

    def kill_head(self) -> None:
        for each in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if each.name() == "gcs_server":
                    each.kill()

    def close(self) -> None:
        for process in self._joined:
            for child in psutil.Process(process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
            process.kill()
            process.wait()
        self._cluster.shutdown()


@contextlib.contextmanager
def cluster(nodes: int = 3) -> Iterator[TestCluster]:
    """Its nodes find the tasks of these tests."""
    with pytest.MonkeyPatch.context() as patch, _folder() as temporary:
        patch.setenv("PYTHONPATH", str(TESTS))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_raylet_start_wait_time_s", "120")
        opened = TestCluster(temporary)
        try:
            for _ in range(nodes):
                opened.add()
            yield opened
        finally:
            opened.close()


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """Short, for the sockets in it."""
    temporary = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def wait_for(truth: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < until, "it did not come to be"
        time.sleep(0.05)


def ray_workers() -> list[psutil.Process]:
    """Ray's worker processes that do a job now, oldest first."""
    found = []
    for each in psutil.process_iter(["cmdline", "create_time"]):
        if (each.info["cmdline"] or [""])[0].startswith("ray::do"):
            found.append(each)
    return sorted(found, key=lambda each: each.info["create_time"])


def environment() -> dict[str, str]:
    """For a driver in a process of its own."""
    return {**os.environ, "PYTHONPATH": str(TESTS)}


def start_driver(*words: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
        **more,
    )
