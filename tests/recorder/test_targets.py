"""Programs that pytest runs, and programs that never call torch.compile."""

from __future__ import annotations

import re
import runpy
import sys
import traceback
from pathlib import Path
from types import TracebackType

import pytest

from compilescope.instrument.recorder.target import python_flags
from recorder.harness import (
    OUR_CODE,
    PROGRAMS,
    Ended,
    finish,
    functions_of,
    latest_run,
    run_captured,
    same,
    show,
    start,
)

pytestmark = pytest.mark.torch


@pytest.mark.slow
def test_pytest_names_the_test(tmp_path: Path) -> None:
    file = "suite_under_test.py"
    # --noconftest: the fixtures of this very session are for this session.
    # Plugins that are beside the point take longer than these tests.
    without = [word for name in ("cacheprovider", "hypothesispytest", "anyio", "xdist")
               for word in ("-p", f"no:{name}")]  # fmt: skip
    words = ("-q", *without, "--noconftest", "--rootdir", ".", file)
    plain = start([sys.executable, "-m", "pytest", *words])
    captured = run_captured(tmp_path, "-q", "--pytest", *words)
    took = re.compile(rb" in \d+\.\d+s")
    ended = finish(plain)
    assert captured.status == ended.status == 1
    assert took.sub(b"", same(captured.stdout)) == took.sub(b"", same(ended.stdout))
    assert captured.stderr == ended.stderr
    tests = {site["function"]: set(site["tests"]) for site in show(tmp_path)["sites"]}
    assert tests == {
        "alone": {f"{file}::test_alone"},
        "helper": {f"{file}::test_shared_first", f"{file}::test_shared_again"},
    }


# It ends with a mistake of its own: the traceback, too, is as it was.
PROGRAM = ("eager_only.py", "-q", "x", "raise")


@pytest.fixture(scope="module")
def uncompiled() -> Ended:
    ended = finish(start([sys.executable, *PROGRAM]))
    assert ended.status == 1 and b"my own mistake" in ended.stderr
    return ended


def ran_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ended:
    """As PROGRAM ends plainly, found without another import of torch."""
    path = PROGRAMS / PROGRAM[0]
    monkeypatch.syspath_prepend(str(PROGRAMS))
    monkeypatch.setattr(sys, "argv", list(PROGRAM))
    with pytest.raises(ValueError, match="my own mistake") as raised:
        runpy.run_path(str(path), run_name="__main__")
    found: TracebackType | None = raised.tb
    while found is not None and found.tb_frame.f_code.co_filename != str(path):
        found = found.tb_next
    words = traceback.format_exception(raised.type, raised.value, found)
    return Ended(1, capsys.readouterr().out.encode(), "".join(words).encode())


def test_compile_all_takes_the_outermost_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run_captured(tmp_path, "-q", "--compile-all", "--backend", "eager", *PROGRAM)
    assert ended == ran_here(monkeypatch, capsys)
    functions = [name for _, name in functions_of(latest_run(tmp_path))]
    # One compilation of Net, ended by its print; its blocks are inlined, not compiled apart.
    assert set(functions) == {"forward"}
    seen = show(tmp_path)
    assert seen["regions"] == 1
    assert [site["source"].strip() for site in seen["sites"]] == ['print("half way")']


@pytest.mark.slow
def test_compile_by_name(tmp_path: Path, uncompiled: Ended) -> None:
    """A class, and functions: of a module, of a class, of another file."""
    names = ("Block", "loss_of", "Net.score", "parcel.maths.triple")
    options = [word for name in names for word in ("--compile", name)]
    ended = run_captured(tmp_path, "-q", *options, "--backend", "eager", *PROGRAM)
    assert ended == uncompiled
    assert OUR_CODE not in ended.stderr
    run = latest_run(tmp_path)
    assert {name for _, name in functions_of(run)} == {"forward", "loss_of", "score", "triple"}


@pytest.mark.slow
def test_compile_by_name_in_a_package_that_is_run(tmp_path: Path) -> None:
    plain = start([sys.executable, "-m", "parcel"])
    options = ("-q", "--compile", "parcel.maths.triple", "--backend", "eager")
    ended = run_captured(tmp_path, *options, "-m", "parcel")
    assert ended == finish(plain)
    assert "triple" in {name for _, name in functions_of(latest_run(tmp_path))}


@pytest.mark.slow
def test_modules_of_torchs_own_are_compiled_too(tmp_path: Path) -> None:
    """As torch.compile(module) has it: all of them share the function that it puts around such a
    module, so the second one is a recompile too."""
    run_captured(tmp_path, "-q", "--compile-all", "--backend", "eager", "torch_modules.py")
    seen = show(tmp_path)
    assert seen["graphs"] == 3
    causes = [cause for again in seen["recompiles"] for cause in again["causes"]]
    assert any(cause["subject"].endswith(".size()[0]") for cause in causes)
    assert all(cause["file"].endswith("torch_modules.py") for cause in causes)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("-m compilescope run a.py -O", ""),
        ("bin/compilescope run -O a.py", ""),
        ("-O -m compilescope", "-O"),
        ("-OOBm compilescope", "-O -O -B"),
        ("-W error -Xdev -u -c code", "-W error -X dev -u"),
        ("-bWerror -X utf8=1 -m compilescope", "-b -W error -X utf8=1"),
        ("-I -S -P -i -s -m compilescope", "-s"),
        ("--check-hash-based-pycs always -m compilescope", ""),
        ("-W", "-W "),
    ],
)
def test_flags_of_the_commands_python_are_the_programs(words: str, flags: str) -> None:
    assert " ".join(python_flags(["python", *words.split()])) == flags
