"""`--isolated`: a program that is run many times runs in a copy of the working folder.

The command goes into the copy and works there as it would in the folder itself; what comes of it
is then named by the real paths. The copy is gone at the end, whatever happens.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.cleaner import transient
from compilescope.base.settings import current_environment, set_variable

T = TypeVar("T")
_MOST_BYTES = 2 << 30
"""Of the copy, and at most half of the free disk. Chosen: source and small data; a larger folder
takes long to copy."""
_FICLONE = 0x40049409
"""The request by which Linux shares the blocks of two files until one changes (linux/fs.h)."""
_LEFT_OUT = frozenset(
    {
        *(".hg", ".svn", "__pycache__", "node_modules", ".tox", ".nox"),
        *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"),
    }
)
_REPOSITORIES = frozenset({".git", ".hg", ".svn"})
_MOST_NEIGHBOURS = 2000
"""Of the working folder. Chosen: a bound for a folder with very many; each link costs a system
call."""
_TOOL_VARIABLES = ("COMPILESCOPE_", "XDG_", "HOME")
"""They say where the tool keeps what outlives the copy."""


@dataclass(frozen=True)
class Copy:
    """The working folder, and its copy."""

    real: str
    folder: str
    place: str = ""
    """What holds the copy, and links to what is beside the working folder."""

    def into(self, word: str) -> str:
        """A path of the working folder, as it is in the copy; also in `--data=PATH`. What was not
        copied stays what it is."""
        option, equals, path = word.partition("=")
        if equals and not os.path.isabs(word):
            return f"{option}={self._path_into(path)}"
        return self._path_into(word)

    def _path_into(self, path: str) -> str:
        if not os.path.isabs(path) or "\0" in path:
            return path
        for each in (path, os.path.realpath(path)):  # It may be named through a link.
            if is_within(each, self.real):
                inside = self.folder + each[len(self.real) :]
                left_out = os.path.lexists(each) and not os.path.lexists(inside)
                return path if left_out else inside
        return path

    def back(self, value: T) -> T:
        """Anything that names paths of the copy, with the real ones."""
        found: Any = self._back(value)
        return found  # type: ignore[no-any-return]

    def _back(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text_back(value)
        if isinstance(value, Path):
            return Path(self._text_back(str(value)))
        if isinstance(value, dict):
            return {self._back(key): self._back(each) for key, each in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self._back, value))
        if isinstance(value, list | tuple | set | frozenset):
            return type(value)(map(self._back, value))
        if isinstance(value, msgspec.Struct):
            fields = {name: self._back(getattr(value, name)) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value) if field.init]
            changes = {name: self._back(getattr(value, name)) for name in names}
            return dataclasses.replace(value, **changes)
        return value

    def _text_back(self, text: str) -> str:
        for ours, real in self._names():
            text = text.replace(ours, real)
        return text

    def _names(self) -> Iterator[tuple[str, str]]:
        yield self.folder, self.real
        if self.place:
            yield self.place + os.sep, os.path.join(os.path.dirname(self.real), "")

    def bytes_back(self, data: bytes, *, as_json: bool = False) -> bytes:
        """The bytes of a file, likewise."""
        for ours, real in self._names():
            coded = json.dumps(real, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
            data = data.replace(os.fsencode(ours), coded if as_json else os.fsencode(real))
        return data

    def rename_in(self, run: Path) -> None:
        """A recorded run names the real paths too."""
        for path in run.rglob("*"):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                renamed = self.bytes_back(data, as_json=path.suffix in (".json", ".jsonl"))
                if renamed != data:
                    path.write_bytes(renamed)


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


@contextlib.contextmanager
def isolated(home: Path, script: str = "") -> Iterator[Copy]:
    """The current folder is a copy of itself. `script` must be in it; runs in `home` stay out."""
    real = os.path.realpath(os.getcwd())
    if script and not os.path.realpath(script).startswith(real + os.sep):
        raise ToolError(
            f"--isolated copies the working folder, and {script} is not in it.",
            hint="Change to the folder of the program first.",
        )
    before = current_environment()
    with _place(home, real) as place:
        place = os.path.realpath(place)
        folder = os.path.join(place, os.path.basename(real) or "work")
        _Copying(real, folder, os.path.realpath(home)).run()
        _link_neighbours(real, place)
        copy = Copy(real, folder, place)
        variables = _renamed_variables(copy, before)
        try:
            os.chdir(folder)
            for name, value in variables.items():
                set_variable(name, value)
            yield copy
        except ToolError as error:
            said = copy.back(error.message), copy.back(error.hint)
            raise ToolError(*said, exit_code=error.exit_code) from None
        finally:
            for name in variables:
                set_variable(name, before.get(name))
            os.chdir(real)


_MEANS = {
    "fix": "fix runs the program many times and hides its output",
    "verify": "both versions run several times, and their output is hidden",
    "tune": "tune runs the program many times and hides its output",
    "minify": "minify runs the program, then many smaller versions of it in temporary folders",
    "check": "minify --check runs the command many times, in temporary folders",
    "logs": "logs --script runs the program many times and hides its output",
}


def announce(command: str, copy: Copy | None = None, *, offered: bool = True) -> None:
    """Before the first run, what it means that there will be many. Not for stdout."""
    words = f"compilescope: {_MEANS[command]}. "
    if copy is not None:
        words += (
            "It works in a copy of this folder; absolute paths in its code, files elsewhere, the "
            "network and GPUs are the real ones."
        )
    else:
        words += "Each run writes its files and uses the network and GPUs as usual"
        words += "; --isolated runs it in a copy of this folder." if offered else "."
    print(words, file=sys.stderr)


def _renamed_variables(copy: Copy, before: dict[str, str]) -> dict[str, str]:
    """Those that name the working folder, or lists with paths in it."""
    renamed = {"PWD": copy.folder}
    for name, value in before.items():
        inside = os.pathsep.join(map(copy.into, value.split(os.pathsep)))
        if inside != value and not name.startswith(_TOOL_VARIABLES):
            renamed[name] = inside
    return renamed


def _link_neighbours(real: str, place: str) -> None:
    """`../data` leads where it did. Not to a repository: there the copy would look like a change
    of the files beside it."""
    with contextlib.suppress(OSError):
        beside = (e for e in os.scandir(os.path.dirname(real)) if e.name not in _REPOSITORIES)
        for entry in itertools.islice(beside, _MOST_NEIGHBOURS):
            with contextlib.suppress(FileExistsError):
                os.symlink(entry.path, os.path.join(place, entry.name))


@contextlib.contextmanager
def _place(home: Path, real: str) -> Iterator[str]:
    """Among temporary files; with the runs, if copies cost nothing there and something here."""
    usual = Path(tempfile.mkdtemp(prefix="isolated-"))
    with transient(usual):
        near = home.absolute() / f".isolated-{os.urandom(4).hex()}"
        if not home.is_dir() or _clones(real, str(usual)) or not _clones(real, str(home)):
            yield str(usual)
            return
        with transient(near):
            near.mkdir(mode=0o700)
            yield str(near)


def _clones(real: str, folder: str) -> bool:
    """Do files of the one take no room in the other until they are changed?"""
    source = next((e.path for e in os.scandir(real) if e.is_file(follow_symlinks=False)), None)
    if source is None:
        return False
    with transient(Path(folder, f".clone-{os.urandom(4).hex()}")) as target:
        try:
            with open(source, "rb") as file, open(target, "xb") as to:
                return _clone(file.fileno(), to.fileno())
        except OSError:
            return False


def _clone(source: int, target: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


class _Copying:
    """One walk through the folder; nothing outside of it is followed."""

    def __init__(self, real: str, folder: str, home: str) -> None:
        self._real = real
        self._folder = folder
        self._home = home
        self._room = min(_MOST_BYTES, shutil.disk_usage(os.path.dirname(folder)).free // 2)
        self._bytes = 0

    def run(self) -> None:
        try:
            self._copy_folder(self._real, self._folder)
        except OSError as error:
            raise ToolError(
                f"--isolated cannot copy {error.filename or self._real}: {error.strerror}."
            ) from None

    def _copy_folder(self, source: str, target: str) -> None:
        os.mkdir(target)
        for entry in os.scandir(source):
            to = os.path.join(target, entry.name)
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                self._copy_link(entry.path, to)
            elif stat.S_ISREG(mode):
                self._copy_file(entry.path, to)
            elif stat.S_ISDIR(mode) and _is_object_store(entry):
                _share_objects(entry.path, to)
            elif stat.S_ISDIR(mode) and not self._is_left_out(entry):
                self._copy_folder(entry.path, to)
        shutil.copystat(source, target)
        os.chmod(target, stat.S_IMODE(os.stat(target).st_mode) | 0o700)

    def _is_left_out(self, entry: os.DirEntry[str]) -> bool:
        inside = os.path.realpath(entry.path)
        is_environment = os.path.isfile(os.path.join(entry.path, "pyvenv.cfg"))
        own = inside in (self._home, os.path.realpath(tempfile.gettempdir()))
        return entry.name in _LEFT_OUT or is_environment or own

    def _copy_link(self, source: str, target: str) -> None:
        leads = os.readlink(source)
        if is_within(leads, self._real):
            leads = self._folder + leads[len(self._real) :]
        elif not is_within(os.path.realpath(source), self._real):
            leads = os.path.join(os.path.dirname(source), leads)  # It leads out, from here too.
        os.symlink(leads, target)

    def _copy_file(self, source: str, target: str) -> None:
        with open(source, "rb") as file, open(target, "xb") as to:
            if not _clone(file.fileno(), to.fileno()):
                self._count(os.fstat(file.fileno()).st_size)
                shutil.copyfileobj(file, to, 1 << 20)
        shutil.copystat(source, target)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._room:
            raise ToolError(
                f"The working folder is too large for --isolated: {self._whole() / 1e9:.1f} GB, "
                f"of at most {self._room / 1e9:.1f} GB.",
                hint="Move large data out of the folder, or run without --isolated.",
            )

    def _whole(self) -> int:
        """All that would have been copied."""
        size, waiting = 0, [self._real]
        while waiting:
            for entry in os.scandir(waiting.pop()):
                if entry.is_file(follow_symlinks=False):
                    size += entry.stat().st_size
                elif entry.is_dir(follow_symlinks=False) and not (
                    _is_object_store(entry) or self._is_left_out(entry)
                ):
                    waiting.append(entry.path)
        return size


def _is_object_store(entry: os.DirEntry[str]) -> bool:
    """Of a git repository."""
    beside = os.path.dirname(entry.path)
    named = ("HEAD", "refs")
    return entry.name == "objects" and all(os.path.exists(os.path.join(beside, n)) for n in named)


def _share_objects(source: str, target: str) -> None:
    """Git reads the real objects, however many, and writes new ones into the copy."""
    os.makedirs(os.path.join(target, "info"))
    with open(os.path.join(target, "info", "alternates"), "wb") as file:
        file.write(os.fsencode(source) + b"\n")
