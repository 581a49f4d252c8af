"""Nodes with other Python environments: real ones, made of links to the packages of this one."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import compilescope
from compilescope.base.errors import ToolError
from compilescope.base.version import VERSION
from compilescope.scale.jobs.ray_engine import RayEngine
from scale.quick_tasks import make
from scale.ray_cluster import TestCluster, cluster

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.torch,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
]


class Environment:
    """A Python environment that has what this one has, but for what is taken out or put in."""

    def __init__(self, folder: Path, *without: str) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.python = folder / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._packages = folder / "lib" / version / "site-packages"
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if not any(name in path.name for name in without):
                (self._packages / path.name).symlink_to(path)

    def put_metadata(self, name: str, version: str) -> None:
        folder = self._packages / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")

    def put_compilescope(self, version: str) -> None:
        """This very package under another version."""
        package = self._packages / "compilescope"
        package.mkdir()
        (package / "base").mkdir()
        ours = Path(compilescope.__file__).parent
        for path in (*ours.iterdir(), *(ours / "base").iterdir()):
            if path.name not in ("base", "version.py"):
                (package / path.relative_to(ours)).symlink_to(path)
        (package / "base" / "version.py").write_text(f"VERSION = {version!r}\n")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestCluster]:
    folder = tmp_path_factory.mktemp("environments")
    without_torch = Environment(folder / "without-torch", "torch")
    without_us = Environment(folder / "without-us", "compilescope")
    other_us = Environment(folder / "other-us", "compilescope")
    other_us.put_compilescope("99.0")
    other_torch = Environment(folder / "other-torch", "torch-")
    other_torch.put_metadata("torch", "2.12.0")
    with cluster(2) as opened:
        for each in (without_torch, without_us, other_us, other_torch):
            opened.join(each.python)
        yield opened


def test_nodes_that_differ(mixed: TestCluster) -> None:
    with RayEngine(mixed.address) as engine:
        jobs = [make(str(number), "sleep", seconds=0.3) for number in range(24)]
        results = [finished.result for finished in engine.run(jobs, lambda progress: None)]
        machines = engine.machines()
    usual = next(machine.torch for machine in machines if not machine.problem)
    assert sorted(machine.problem for machine in machines) == [
        "",
        "",
        "Takes no part: compilescope is not installed there.",
        f"Takes no part: it has compilescope 99.0, and this is {VERSION}.",
        "Takes no part: torch is not installed there.",
        f"torch 2.12.0; the other nodes have {usual}: findings may differ for that reason.",
    ]
    assert [result.state for result in results] == ["ok"] * 24
    fit = {machine.name for machine in machines if "Takes no part" not in machine.problem}
    assert {result.machine for result in results} == fit


def test_no_node_can_be_used(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "without-torch", "torch")
    with cluster(0) as opened:
        opened.join(environment.python)
        with pytest.raises(ToolError) as error:
            RayEngine(opened.address).__enter__()
    assert error.value.message.startswith("No node of the Ray cluster can run the jobs. ")
    assert error.value.message.endswith(": Takes no part: torch is not installed there.")
