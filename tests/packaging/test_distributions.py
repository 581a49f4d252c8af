"""The wheel and the sdist, built once and installed apart from the source tree.

Libraries, torch among them, are links to those of the environment that runs the tests: only
compilescope is installed anew. The slow test has pip resolve and install real dependencies.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_bytes, message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")
FOLDERS = ("src", "cpp")
MOST_BYTES = 3_500_000
"""Chosen: what is in it now, and a tenth; a data file that slips in is larger than that."""
BUILD = """
import sys
from setuptools import build_meta
made = getattr(build_meta, f"build_{sys.argv[1]}")(sys.argv[2])
print(f"\\nmade {made}")
"""
PROGRAM = """
import sys
import torch

@torch.compile(backend="eager")
def f(x):
    print("eager")
    return x + 1

f(torch.ones(3))
import compilescope
print("from", compilescope.__file__)
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="environments are made of links")


def build(kind: str, tree: Path, into: Path) -> Path:
    done = run(sys.executable, "-c", BUILD, kind, into, cwd=tree)
    return into / done.stdout.rpartition("made ")[2].strip()


def run(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    base = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTEST_CURRENT_TEST")}
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**base, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist of a copy of the tree, and the wheel that is made of the sdist alone."""
    place = tmp_path_factory.mktemp("build")
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    (place / "tree").mkdir()
    for name in SOURCES:
        shutil.copy2(ROOT / name, place / "tree" / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, place / "tree" / name, ignore=unwanted)
    sdist = build("sdist", place / "tree", place)
    shutil.unpack_archive(sdist, place / "unpacked")
    (unpacked,) = (place / "unpacked").iterdir()
    return sdist, build("wheel", unpacked, place)


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, symlinks=True)
    packages = next(place.glob("lib/python*/site-packages"))
    pip = (sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install")
    run(*pip, "--no-deps", "--no-index", "--quiet", built[1], cwd=place)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        # Without the .pth files: that of an editable compilescope must not come along.
        if "compilescope" not in entry.name and entry.suffix != ".pth":
            target = packages / entry.name
            if not target.exists():
                target.symlink_to(entry)
    return place / "bin"


def test_the_wheel_is_small_and_whole(built: tuple[Path, Path]) -> None:
    wheel = built[1]
    assert wheel.stat().st_size < MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (told,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        about = message_from_string(archive.read(told).decode())
    wanted = {"py.typed", "measure/tensors/copies.py", "cpp/CMakeLists.txt"}
    wanted |= {"knowledge/registry/examples.json"}
    assert {f"compilescope/{name}" for name in wanted} <= names
    assert not [name for name in names if "/tests/" in name or name.endswith(".pyc")]
    urls = {line.partition(",")[0] for line in about.get_all("Project-URL")}
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= urls
    assert "Typing :: Typed" in about.get_all("Classifier")
    assert about["License-Expression"] == "BSD-3-Clause"


def test_the_readme_needs_no_checkout(built: tuple[Path, Path]) -> None:
    """On the package index every picture and every link is an address, of a file that is here."""
    with zipfile.ZipFile(built[1]) as archive:
        (told,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        about = message_from_bytes(archive.read(told))
    assert about["Description-Content-Type"] == "text/markdown"
    text = about.get_payload(decode=True).decode("utf-8")
    pictures = re.findall(r'(?:src|srcset)="([^"]*)"', text)
    links = re.findall(r"\]\(([^)]*)\)", re.sub(r"```.*?```", "", text, flags=re.S))
    assert pictures and links
    for address in [*pictures, *links]:
        found = re.fullmatch(r"https://[\w.]+/(?:\w+/){2}(?:blob/)?main/([^#]+)(#.*)?", address)
        assert found and (ROOT / found[1]).is_file(), address
    assert all(each.startswith("https://raw.githubusercontent.com/") for each in pictures)


def test_every_data_file_of_the_package_is_in_the_wheel(built: tuple[Path, Path]) -> None:
    """A new kind of file is forgotten in pyproject.toml easily, and missed by nobody here."""
    with zipfile.ZipFile(built[1]) as archive:
        names = {name for name in archive.namelist() if name.startswith("compilescope/")}
        bundles = [name for name in names if name.endswith(("/examples.json", "/notes.json"))]
        for bundle in bundles:
            folder = bundle.removesuffix(".json")
            names |= {f"{folder}/{name}" for name in json.loads(archive.read(bundle))}
    source = ROOT / "src"
    package = source / "compilescope"
    files = {path for path in package.rglob("*") if path.is_file()}
    missing = {
        name
        for path in files
        if not any(part.startswith((".", "__pycache__")) for part in path.relative_to(source).parts)
        and (name := path.relative_to(source).as_posix()) not in names
    }
    only_here = {
        *(f"compilescope/{path.parent.name}/README.md" for path in package.glob("*/README.md")),
        "compilescope/apps/lessons/ruff.toml",
        "compilescope/knowledge/registry/taxonomy.toml",
    }
    refused = {name for name in missing if "/examples/" in name and "/refused" in name}
    assert missing - refused == only_here


@pytest.mark.torch
def test_the_installed_command_captures_a_program(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    done = run(installed / "compilescope", "run", "--json", "train.py", cwd=tmp_path)
    *printed, last = done.stdout.splitlines()
    assert "eager" in printed
    # The program finds the installed package, not the checkout.
    assert any(line.startswith(f"from {installed.parent}") for line in printed)
    told = json.loads(last)
    assert "GB0059" in last and told["graphs"] == 1
    run(installed / "compilescope", "report", "-o", "page.html", cwd=tmp_path)
    assert "GB0059" in (tmp_path / "page.html").read_text()


def test_installed_commands_find_their_data(installed: Path, tmp_path: Path) -> None:
    command = installed / "compilescope"
    assert "Diagnose" in run(command, "--help", cwd=tmp_path).stdout
    examples = json.loads(run(command, "registry", "examples", "--json", cwd=tmp_path).stdout)
    here = json.loads(
        run(sys.executable, "-m", "compilescope", "registry", "examples", "--json", cwd=ROOT).stdout
    )
    assert examples["examples"] == here["examples"]
    fixes = run(command, "fix", "--list", "--json", cwd=tmp_path).stdout
    assert json.loads(fixes) == json.loads(
        run(sys.executable, "-m", "compilescope", "fix", "--list", "--json", cwd=ROOT).stdout
    )
    assert "npu-a" in run(command, "devices", cwd=tmp_path).stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_pip_resolves_what_it_needs(built: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    """Without torch, as in an environment of the tool's own."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", built[kind == "wheel"], cwd=tmp_path)
    run(python, "-m", "pip", "check", cwd=tmp_path)
    command = tmp_path / "env" / "bin" / "compilescope"
    assert "npu-a" in run(command, "devices", cwd=tmp_path).stdout
    run(command, "fix", "--list", cwd=tmp_path)
