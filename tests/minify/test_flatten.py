"""Programs of several modules as one file: the same output, or the import stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.change.minify.source.minifier import named_files, read_program, with_arguments
from compilescope.change.minify.source.one_file import OneFileProgram, flatten

HELPERS = """'''Helpers.'''
import math as m
SCALE = 2.0
def norm(x):
    return x / SCALE
def report(x):
    print("report", x, m.floor(x))
class Base:
    def run(self, x):
        return norm(x)
"""
MODEL = """from __future__ import annotations
import helpers
from helpers import Base as Parent, report
SCALE = 3.0
class Net(Parent):
    def run(self, x):
        report(x * SCALE * helpers.SCALE)
        return super().run(x)
if __name__ == "__main__":
    print("never")
"""
MAIN = """import os, package
from package import Net
from helpers import *
def main():
    norm = 7
    print(Net().run(4.0), package.Net is Net, norm, SCALE, report(1.5))
if __name__ == "__main__":
    main()
"""


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _output(text: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _flat(folder: Path, main: str, files: dict[str, str]) -> OneFileProgram:
    _write(folder, files)
    return flatten(main, (str(folder),))


def test_modules_and_packages_become_one_file(tmp_path: Path) -> None:
    files = {
        "helpers.py": HELPERS,
        "package/model.py": MODEL,
        "package/__init__.py": "from .model import Net\n",
    }
    flat = _flat(tmp_path, MAIN, files)
    assert flat.left == {} and set(flat.inlined) == {"helpers", "package", "package.model"}
    assert "import helpers" not in flat.text and "import os" in flat.text
    assert _output(flat.text) == _output(MAIN, tmp_path)


def test_names_that_two_modules_have_are_told_apart(tmp_path: Path) -> None:
    files = {
        "one.py": "x = 1\ndef get():\n    return x\ndef put():\n    global y\n    y = x\n",
        "two.py": "import one\nx = 2\ndef get():\n    x = one.x * 10\n    return x + one.get()\n",
    }
    main = "from one import get\nimport two as second\nx = 3\nprint(get(), second.get(), x)\n"
    flat = _flat(tmp_path, main, files)
    assert flat.left == {}
    assert _output(flat.text) == _output(main, tmp_path) == "1 11 3\n"


def test_a_local_of_the_same_name_hides_nothing(tmp_path: Path) -> None:
    files = {"one.py": "def size(x):\n    return len(x)\n"}
    main = "import one\ndef f(size):\n    return one.size('abc') + size\nprint(f(1))\n"
    flat = _flat(tmp_path, main, files)
    assert _output(flat.text) == _output(main, tmp_path) == "4\n"


@pytest.mark.parametrize(
    ("module", "main", "word"),
    [
        ("n = 0\ndef f():\n    global n\n    n += 1\n", "from one import n, f\nf()\n", "reassigns"),
        ("x = __file__\n", "import one\nprint(1)\n", "__file__"),
        ("x = 1\n", "import one\nprint(vars(one)['x'])\n", "object"),
        ("x = 1\n", "import one\ndef f():\n    one.x = 2\nf()\n", "object"),
        ("x = 1\n", "def f():\n    import one\n    return one.x\nf()\n", "may not run"),
        ("x = 1\n", "from one import x\nx = 2\n", "more than once"),
        ("x = 1\n", "import one\ndef f(one):\n    return one.x\n", "other variables"),
    ],
)
def test_what_cannot_be_moved_stays_an_import(
    tmp_path: Path, module: str, main: str, word: str
) -> None:
    flat = _flat(tmp_path, main, {"one.py": module})
    assert flat.text == main and word in flat.left["one"]


def test_cycles_and_what_a_module_that_stays_imports_stay(tmp_path: Path) -> None:
    files = {"a.py": "import b\nx = 1\n", "b.py": "import a\ny = 2\n"}
    assert set(_flat(tmp_path, "import a\nprint(a.x)\n", files).left) == {"a", "b"}
    files = {"c.py": "import d\nz = __file__\n", "d.py": "w = 1\n"}
    flat = _flat(tmp_path, "import c, d\nprint(d.w, c.d)\n", files)
    assert set(flat.left) == {"c", "d"} and flat.text.startswith("import c, d")


def test_installed_and_broken_modules_are_left_alone(tmp_path: Path) -> None:
    main = "import json, bad, numpy as np\n"
    flat = _flat(tmp_path, main, {"bad.py": "def (:\n"})
    assert flat == OneFileProgram(main)


def test_arguments_are_written_into_the_program() -> None:
    text = "'''Doc.'''\nfrom __future__ import annotations\nimport sys\nprint(sys.argv[1:])\n"
    assert _output(with_arguments(text, ("--n", "it's"))) == "['--n', \"it's\"]\n"
    assert with_arguments(text, ()) == text


def test_files_that_the_program_names_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, {"data.csv": "1", "more/x.txt": "2", "not_named": "3"})
    monkeypatch.chdir(tmp_path)
    text = f"open('data.csv')\nopen('more/x.txt')\nopen({str(tmp_path / 'not_named')!r})\n'..'\n''"
    found = named_files(text, ("more", "--x"))
    assert [name for name, _ in found] == ["data.csv", "more", "more/x.txt"]


def test_a_module_is_read_from_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(
        tmp_path,
        {
            "pack/__init__.py": "",
            "pack/parts.py": "x = 5\n",
            "pack/__main__.py": "from .parts import x\nprint(x)\n",
        },
    )
    monkeypatch.chdir(tmp_path)
    program = read_program("module", ("pack", "--a"))
    flat = program.in_one_file()
    assert flat.left == {} and _output(flat.text) == "5\n"
