"""Which programs a sweep runs (those of lists and folders, each with a short name of its own), and
a program as it travels to the worker that runs it: a file, or a model class of a library.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.child import run_process
from compilescope.base.processes.outcome import ProcessEnd, last_words
from compilescope.base.settings import current_environment
from compilescope.base.texts import one_line
from compilescope.instrument.recorder.target import Target
from compilescope.record.plain_files import read_given, read_plain

PROGRAM = Path(__file__).parent / "programs" / "transformers_model.py"
CLASS_VARIABLE = "COMPILESCOPE_SWEEP_CLASS"
"""Names the class to the program's `build()`, for `diff` and `bench`."""
UNBUILT_STATUS = 3
"""The program's exit status where a class can't be built or run in eager mode."""
_LIMIT_S = 300.0
"""For importing every class of transformers. Chosen: it ends what hangs."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")
TASK = "compilescope.scale.sweep.capture:capture"


class SweepProgram(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one job runs."""

    name: str
    kind: Literal["script", "module", "transformers"]
    words: tuple[str, ...]
    """The script or module and its arguments; of `transformers`, the class."""
    folder: str = "."
    """Where it runs, relative to the sweep's base folder."""


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job's payload: a program and what to do with it."""

    program: SweepProgram
    base: str
    """The folder on the driver's machine that programs lie in."""
    shipped: bool = False
    """The base folder was sent to the worker, which has it as its current folder."""
    backend: str = ""
    compile_all: bool = False
    device: str = ""
    threads: int | None = None
    bench: bool = False
    diff: bool = False
    fix: bool = False

    @property
    def here(self) -> Path:
        """The base folder on this machine."""
        return Path(os.getcwd()) if self.shipped else Path(self.base)

    @property
    def folder(self) -> Path:
        return (self.here / self.program.folder).resolve()

    def target(self) -> Target:
        program = self.program
        if program.kind == "transformers":
            # The class's own files are all installed: any folder does, and ours is always there.
            words = (str(PROGRAM), *program.words)
            words += ("--backend", self.backend) if self.backend else ()
            words += ("--device", self.device) if self.device else ()
            return Target("script", words, PROGRAM.parent)
        return Target(program.kind, program.words, self.folder)

    def build_function(self) -> str:
        """`file.py:build`, as `diff` and `bench` take it; empty where the program has none."""
        if self.program.kind == "transformers":
            return f"{PROGRAM}:build"
        if self.program.kind == "module":
            return ""
        script = self.folder / self.program.words[0]
        return f"{script}:build" if _defines_build(script) else ""

    def environment(self) -> dict[str, str]:
        """Beside the worker's own: jobs side by side must not fight for the cores."""
        more: dict[str, str] = {}
        if self.threads is not None:
            given = current_environment()  # What a user set is meant.
            more |= {name: str(self.threads) for name in _THREADS if name not in given}
        if self.device == "cpu":
            more["CUDA_VISIBLE_DEVICES"] = ""
        if self.program.kind == "transformers":
            more[CLASS_VARIABLE] = self.program.words[0]
        return more


def _defines_build(script: Path) -> bool:
    import ast

    try:
        tree = ast.parse(script.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == "build" for node in tree.body)


# The model classes of `transformers`: asked of the program that builds them, in a child process.
#
# The tool itself never imports `transformers` or torch.


class ModelClass(msgspec.Struct, frozen=True):
    """A concrete model class, and the folder of `transformers` it lies in."""

    name: str
    family: str


def find_classes(pattern: str) -> list[ModelClass]:
    """Those that match: `all`, a family, or globs on class names, separated by commas."""
    found = _listed(pattern)
    if not found:
        raise ToolError(f"No model class of transformers matches {pattern!r}.", hint=_hint(pattern))
    return found


def _listed(pattern: str) -> list[ModelClass]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(PROGRAM), "--list", pattern]
        ended = run_process(command, current_environment(), Path(folder), limit_s=_LIMIT_S)
    if ended.status != 0:
        raise _failure(ended)
    # Whatever imports print stands before it.
    lines = ended.stdout.decode(errors="replace").strip().splitlines()
    try:
        return msgspec.json.decode(lines[-1], type=list[ModelClass])
    except (IndexError, msgspec.DecodeError):
        raise ToolError("The model classes of transformers can't be listed: no output.") from None


def _failure(ended: ProcessEnd) -> ToolError:
    if ended.timed_out:
        return ToolError(f"Listing the classes of transformers took over {_LIMIT_S:.0f} s.")
    last = last_words(ended.stderr) or f"exit status {ended.status}"
    if "No module named 'transformers'" in last:
        return ToolError(
            "transformers is not installed.", hint='Run: pip install "compilescope[models]"'
        )
    return ToolError(f"The model classes of transformers can't be listed: {last}")


def _hint(pattern: str) -> str:
    known = _listed("all")
    names = {each.name for each in known} | {each.family for each in known}
    near = difflib.get_close_matches(pattern, names, n=3)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return "Give all, a family such as bert, or a glob on class names such as '*ForCausalLM'."


_USES_TORCH = re.compile(r"\btorch|\btransformers\b|\blightning\b")
_TEST_FILE = re.compile(r"test_.*|.*_test|conftest")
_SETUP_FILES = ("setup", "noxfile", "fabfile")
_LONGEST_NAME = 60
"""Letters. Chosen: a row of a table."""
_SKIPPED_FOLDERS = ("__pycache__", "node_modules", "site-packages")


class ProgramListing(msgspec.Struct, frozen=True, kw_only=True):
    """The programs that were found."""

    programs: tuple[SweepProgram, ...]
    base: str
    """The folder that theirs are relative to."""
    left_out: dict[str, int] = {}
    """Reason -> how many files of folders are no programs of this sweep."""


class _Found(msgspec.Struct, frozen=True):
    kind: str
    words: tuple[str, ...]
    folder: Path
    label: str


def list_programs(sources: Iterable[Path]) -> ProgramListing:
    """Of lists, folders and single programs, in the order given."""
    left_out: dict[str, int] = {}
    found: list[_Found] = []
    for source in sources:
        if source.is_dir():
            found += _of_folder(source, left_out)
        elif not source.exists():
            raise ToolError(f"There is no file or folder {source}.")
        elif source.suffix == ".py":
            whole = source.absolute()
            found.append(_Found("script", (whole.name,), whole.parent, whole.stem))
        else:
            found += _of_list(source)
    if not found:
        raise ToolError(_nothing(left_out), hint=_HINT)
    base = Path(os.path.commonpath([str(place) for each in found for place in _places(each)]))
    names = _names([each.label for each in found], [" ".join(each.words[1:]) for each in found])
    programs = tuple(
        SweepProgram(
            name=name,
            kind="module" if each.kind == "module" else "script",
            words=each.words,
            folder=Path(os.path.relpath(each.folder, base)).as_posix(),
        )
        for name, each in zip(names, found, strict=True)
    )
    return ProgramListing(programs=programs, base=str(base), left_out=left_out)


def list_classes(pattern: str) -> ProgramListing:
    """Model classes of transformers, each a job under its own name."""
    names = dict.fromkeys(each.name for each in find_classes(pattern))
    programs = tuple(SweepProgram(name=name, kind="transformers", words=(name,)) for name in names)
    return ProgramListing(programs=programs, base=str(PROGRAM.parent))


def _places(found: _Found) -> Iterator[Path]:
    """Where it runs, and where its file lies, which may be elsewhere."""
    yield found.folder
    if found.kind == "script":
        yield Path(os.path.abspath(found.folder / found.words[0])).parent


_ONE = {
    "test files": "test file",
    "setup files": "setup file",
    "modules of packages": "module of a package",
    "files that cannot be read": "file that cannot be read",
    "files that don't use torch": "file that doesn't use torch",
}
_HINT = "A list has one program a line, with its arguments; a folder is searched for .py files."


def _nothing(left_out: dict[str, int]) -> str:
    if not left_out:
        return "There are no programs to sweep over."
    return f"There are no programs to sweep over: {left_out_words(left_out)}."


def left_out_words(left_out: dict[str, int]) -> str:
    """`left out 3 test files, 1 file without torch`."""
    told = (
        f"{number} {_ONE[reason] if number == 1 else reason}"
        for reason, number in sorted(left_out.items())
    )
    return f"left out {', '.join(told)}" if left_out else ""


def _of_list(path: Path) -> Iterator[_Found]:
    try:
        lines = read_given(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"Cannot read the list {path}: {_why(error)}.") from None
    folder = path.absolute().parent
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            words = tuple(shlex.split(line, comments=True))
        except ValueError as error:
            raise ToolError(f"{where}: {error}.") from None
        if not words:
            continue
        if words[0] == "-m":
            if len(words) == 1:
                raise ToolError(f"{where}: -m needs the name of a module.")
            yield _Found("module", words[1:], folder, words[1])
        elif not (folder / words[0]).is_file():
            raise ToolError(f"{where}: there is no file {folder / words[0]}.")
        else:
            yield _Found("script", words, folder, _label(Path(words[0])))


def _why(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"


def _label(path: Path) -> str:
    """`sub/prog` of `sub/prog.py`, `prog` of a path from elsewhere."""
    outside = path.is_absolute() or ".." in path.parts
    return path.stem if outside else path.with_suffix("").as_posix()


def _of_folder(folder: Path, left_out: dict[str, int]) -> Iterator[_Found]:
    """Its .py files, in the order of their paths."""
    root = folder.absolute()
    for place, folders, files in os.walk(root):
        here = Path(place)
        folders[:] = sorted(name for name in folders if _is_searched(here / name))
        if here != root and "__init__.py" in files:
            _count(left_out, "modules of packages", _python_files(here))
            folders[:] = []
            continue
        for name in sorted(files):
            if not name.endswith(".py") or name.startswith("."):
                continue
            reason = _reason(here / name)
            if reason:
                _count(left_out, reason)
                continue
            path = here / name
            yield _Found(
                "script", (path.relative_to(root).as_posix(),), root, _label(path.relative_to(root))
            )


def _is_searched(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in _SKIPPED_FOLDERS
    return not hidden and not (folder / "pyvenv.cfg").exists()


def _python_files(folder: Path) -> int:
    return sum(path.suffix == ".py" for path in folder.rglob("*.py"))


def _count(left_out: dict[str, int], reason: str, number: int = 1) -> None:
    left_out[reason] = left_out.get(reason, 0) + number


def _reason(path: Path) -> str:
    """Why a file is no program of a sweep; empty where it is one."""
    if _TEST_FILE.fullmatch(path.stem):
        return "test files"
    if path.stem in _SETUP_FILES or path.stem == "__init__":
        return "setup files" if path.stem != "__init__" else "modules of packages"
    try:
        text = read_plain(path).decode("utf-8", "replace")
    except OSError:
        return "files that cannot be read"
    return "" if _USES_TORCH.search(text) else "files that don't use torch"


def _names(labels: list[str], arguments: list[str]) -> list[str]:
    """Labels; with the arguments where labels are equal; with a number where that is not enough."""
    often = {label: labels.count(label) for label in set(labels)}
    taken: set[str] = set()
    names = []
    for label, words in zip(labels, arguments, strict=True):
        name = f"{label} {words}".strip() if often[label] > 1 else label
        name = one_line(name)
        name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        number, unique = 2, name
        while unique in taken:
            number, unique = number + 1, f"{name} ({number})"
        taken.add(unique)
        names.append(unique)
    return names
