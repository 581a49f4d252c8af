"""Where the Python that runs programs has no torch, both Pythons are named."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from compilescope.cli.interpreters import missing_torch

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform == "win32", reason="environments are made of links"),
]


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with everything that is installed here but torch."""
    place = tmp_path_factory.mktemp("environments") / "plain"
    venv.create(place, symlinks=True)
    packages = next(place.glob("lib/python*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("torch", "functorch", "pip")):
            (packages / entry.name).symlink_to(entry)
    return place / "bin" / "python"


def call(python: Path, tmp_path: Path, *words: str, **environment: str) -> tuple[int, str]:
    program = tmp_path / "train.py"
    program.write_text("import torch\n")
    base = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    done = subprocess.run(
        [python, "-m", "compilescope", *words, "--dir", tmp_path / "runs", program],
        env={**base, "PYTHONPATH": "", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", [("fix",), ("preflight", "--device", "npu-a")], ids=" ".join)
def test_the_python_that_has_torch_is_named(
    without_torch: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    around = {"VIRTUAL_ENV": sys.prefix, "PATH": "/usr/bin:/bin"}
    status, said = call(without_torch, tmp_path, *words, **around)
    other = os.path.join(sys.prefix, "bin", "python")
    assert status == 2
    # Only preflight lets the program fail, in its own words.
    assert said.count("Traceback") == (words[0] == "preflight")
    assert f"compilescope runs programs with {without_torch}, which has no torch; {other}" in said
    assert f"`{other} -m pip install compilescope`" in said


def test_where_no_python_has_torch_it_is_to_be_installed(
    without_torch: Path, tmp_path: Path
) -> None:
    status, said = call(without_torch, tmp_path, "fix", PATH=str(tmp_path))
    assert status == 2
    assert f'`{without_torch} -m pip install "compilescope[torch]"`' in said


def test_nothing_is_missing_here() -> None:
    assert missing_torch() is None
