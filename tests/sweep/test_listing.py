"""Which programs a sweep runs, and what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.scale.sweep.program import (
    ProgramRequest,
    SweepProgram,
    left_out_words,
    list_programs,
)

USES_TORCH = "import torch\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_folder_gives_its_programs_in_order_and_says_what_is_left_out(tmp_path: Path) -> None:
    files = {"b.py": USES_TORCH, "a.py": "from torch import nn\n", "sub/c.py": USES_TORCH}
    files |= {"test_a.py": USES_TORCH, "conftest.py": USES_TORCH, "tools.py": "import os\n"}
    files |= {".hidden/d.py": USES_TORCH, "package/__init__.py": "", "package/e.py": USES_TORCH}
    files |= {"venv/pyvenv.cfg": "", "venv/lib/f.py": USES_TORCH, "notes.txt": "torch"}
    listed = list_programs([write(tmp_path, files)])
    assert [program.name for program in listed.programs] == ["a", "b", "sub/c"]
    assert [program.words for program in listed.programs] == [("a.py",), ("b.py",), ("sub/c.py",)]
    assert listed.left_out == {
        "test files": 2,
        "files that don't use torch": 1,
        "modules of packages": 2,
    }
    told = "left out 1 file that doesn't use torch, 2 modules of packages, 2 test files"
    assert left_out_words(listed.left_out) == told


def test_a_list_has_programs_with_arguments_modules_and_comments(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "sub/b.py": ""})
    (tmp_path / "list.txt").write_text(
        "# all of them\n\na.py --size 'two words' # small\na.py --size 2\n-m pkg.mod -x\nsub/b.py\n"
    )
    listed = list_programs([tmp_path / "list.txt"])
    assert [program.name for program in listed.programs] == [
        "a --size two words",
        "a --size 2",
        "pkg.mod",
        "sub/b",
    ]
    first, _, module, _ = listed.programs
    assert first.words == ("a.py", "--size", "two words")
    assert (module.kind, module.words) == ("module", ("pkg.mod", "-x"))
    assert listed.base == str(tmp_path)


def test_names_are_unique_and_short(tmp_path: Path) -> None:
    write(tmp_path, {"one/a.py": USES_TORCH, "two/a.py": USES_TORCH})
    (tmp_path / "list.txt").write_text(f"one/a.py\none/a.py\none/a.py {'x' * 200}\n")
    sources = [tmp_path / "one", tmp_path / "two", tmp_path / "list.txt"]
    names = [program.name for program in list_programs(sources).programs]
    assert names[:4] == ["a", "a (2)", "one/a", "one/a (2)"]
    assert len(set(names)) == len(names) == 5
    assert max(map(len, names)) <= 66


def test_programs_of_several_sources_share_a_base_folder(tmp_path: Path) -> None:
    write(tmp_path, {"one/a.py": USES_TORCH, "two/deep/b.py": USES_TORCH})
    listed = list_programs([tmp_path / "one", tmp_path / "two" / "deep" / "b.py"])
    assert listed.base == str(tmp_path)
    assert [program.folder for program in listed.programs] == ["one", "two/deep"]
    asked = ProgramRequest(program=listed.programs[1], base=listed.base)
    assert asked.target().cwd == tmp_path / "two" / "deep"
    assert asked.target().root == str(tmp_path / "two" / "deep")


@pytest.mark.parametrize(
    ("files", "source", "words"),
    [
        ({}, "nowhere", "There is no file or folder"),
        ({"list.txt": "# nothing\n"}, "list.txt", "There are no programs to sweep over."),
        ({"list.txt": "a.py\nb.py\n", "a.py": ""}, "list.txt", "list.txt:2: there is no file"),
        ({"list.txt": "-m\n"}, "list.txt", "list.txt:1: -m needs the name of a module."),
        ({"list.txt": "a.py 'open\n", "a.py": ""}, "list.txt", "list.txt:1: No closing quotation."),
        ({"d/t.py": "import os"}, "d", "left out 1 file that doesn't use torch."),
    ],
)
def test_what_cannot_be_listed_is_one_sentence(
    tmp_path: Path, files: dict[str, str], source: str, words: str
) -> None:
    write(tmp_path, files)
    with pytest.raises(ToolError) as error:
        list_programs([tmp_path / source])
    assert words in error.value.message
    assert error.value.exit_code == 2


def test_a_build_function_is_found_without_running_the_program(tmp_path: Path) -> None:
    write(
        tmp_path, {"with.py": "def build():\n    1 / 0\n", "without.py": "x = 1\n", "bad.py": "("}
    )
    for name, found in (("with", True), ("without", False), ("bad", False)):
        program = SweepProgram(name=name, kind="script", words=(f"{name}.py",))
        asked = ProgramRequest(program=program, base=str(tmp_path))
        assert asked.build_function() == (f"{tmp_path}/with.py:build" if found else "")
