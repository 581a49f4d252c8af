"""Where the Python that runs programs has no torch, both Pythons are named, and `--python` runs
them with the one that has it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from compilescope.apps.cli import other_python
from compilescope.apps.cli.interpreters import missing_torch
from compilescope.base.errors import ToolError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    assert f"`--python {other}`" in said


def test_where_no_python_has_torch_it_is_to_be_installed(
    without_torch: Path, tmp_path: Path
) -> None:
    status, said = call(without_torch, tmp_path, "fix", PATH=str(tmp_path))
    assert status == 2
    assert f'`{without_torch} -m pip install "compilescope[torch]"`' in said
    assert "`--python PATH`" in said


def test_nothing_is_missing_here() -> None:
    assert missing_torch() is None


TOOLS = ("click", "libcst", "msgspec", "psutil", "rich")
"""Libraries of ours that torch does not need."""
PROGRAM = """
import sys
import msgspec  # A file of the program's own, which hides the library.
import torch

@torch.compile(backend="eager")
def f(x):
    print()
    return x + 1

f(torch.ones(3))
print(sys.executable, msgspec.OWN, *sys.argv[1:])
"""


@pytest.fixture(scope="module")
def only_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with everything but compilescope and some of what it needs."""
    place = tmp_path_factory.mktemp("environments") / "torch"
    venv.create(place, symlinks=True)
    packages = next(place.glob("lib/python*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "compilescope" not in entry.name and not entry.name.startswith(TOOLS):
            (packages / entry.name).symlink_to(entry)
    return place


def run_there(python: Path, folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "compilescope", *words],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_runs_with_the_named_python(
    without_torch: Path, only_torch: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "msgspec.py").write_text("OWN = 'own'\n")
    done = run_there(without_torch, tmp_path, "run", "--python", only_torch, "train.py", "--python")
    assert done.returncode == 0, done.stderr
    # The program's own options are its own.
    assert done.stdout.split() == [str(only_torch / "bin" / "python"), "own", "--python"]
    assert "Graph breaks  1" in done.stderr
    assert f"Next: compilescope fix --python {only_torch} train.py --python" in done.stderr


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere/python", "There is no Python nowhere/python."),
        ("no-such-python", "There is no Python no-such-python."),
        ("/bin/true", "/bin/true is not a working Python."),
        (".", ". is not a virtual environment: it has no bin/python."),
    ],
)
def test_what_is_no_python_is_named(tmp_path: Path, path: str, said: str) -> None:
    done = run_there(Path(sys.executable), tmp_path, "run", "--python", path, "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == f"compilescope: error: {said}"


def test_our_own_python_is_no_other(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    own = Path(sys.executable)
    done = run_there(own, tmp_path, "run", "-q", "--python", own, "train.py")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert not (tmp_path / "cache").exists()


def test_a_library_that_is_too_old_there_is_named(only_torch: Path) -> None:
    python = other_python.ask(str(only_torch), ["fsspec"])
    assert "fsspec" in python.has
    old = python._replace(has={"fsspec": "2020.1"})
    with pytest.raises(ToolError, match=r"has fsspec 2020\.1, and compilescope needs 2024\.2"):
        other_python._check(old, other_python._distributions())


def test_pythons_that_are_too_old_are_refused() -> None:
    tables = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    oldest = tables["project"]["requires-python"].removeprefix(">=")
    assert ".".join(map(str, other_python._OLDEST)) == oldest
    python = other_python.OtherPython("/opt/python", "/opt", (3, 9, 1), "", {})
    with pytest.raises(ToolError, match=r"Python 3\.9.* is too old"):
        other_python._check(python, {})
