"""The process of a command, before it imports anything else: imports are most of what a small
command costs. No other process that imports us is changed.
"""

import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from io import FileIO
from types import CodeType, ModuleType
from typing import Any


def begin() -> None:
    _put_installed_first()
    sys.meta_path.insert(0, _OurFinder)
    _put_late_modules()
    _import_msgspec()


def _put_installed_first() -> None:
    """What lies in the current folder or on PYTHONPATH is the program's, and may be called like one
    of our libraries. Python puts its own archive, there or not, right behind those. The folder
    that we are in is ours wherever it is named: `--python` has our libraries there."""
    archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    names = [os.path.basename(path) for path in sys.path]
    if archive in names:
        at = names.index(archive)
        # No import yet: this file lies in compilescope/apps/cli.
        home = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
        first, rest = sys.path[at:], sys.path[:at]
        first += [path for path in rest if path == home]
        sys.path[:] = first + [path for path in rest if path != home]


_OURS = "compilescope."
_OPTIMIZED = f".opt-{sys.flags.optimize}" if sys.flags.optimize else ""
_COMPILED = f".{sys.implementation.cache_tag}{_OPTIMIZED}.pyc"


class _OurFinder:
    """Finds our own modules as Python would, but looks in one place, and reads what was compiled
    before at once: there are hundreds. Whatever is not as usual is left to Python."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or len(path) != 1 or not name.startswith(_OURS):
            return None
        own = name.rpartition(".")[2]
        return _spec(name, path[0], own) or _spec(name, f"{path[0]}{os.sep}{own}", "__init__")


def _spec(name: str, folder: str, stem: str) -> ModuleSpec | None:
    """None: there is no such file, or it was not compiled since it changed."""
    file = f"{folder}{os.sep}{stem}.py"
    compiled = f"{folder}{os.sep}__pycache__{os.sep}{stem}{_COMPILED}"
    try:
        with FileIO(compiled) as opened:
            data = opened.read()
        source = os.stat(file)
    except OSError:
        return None
    # The 0 says: the time of the source tells whether it is current.
    numbers = (0, int(source.st_mtime), source.st_size)
    head = MAGIC_NUMBER + b"".join(number.to_bytes(8, "little")[:4] for number in numbers)
    if not data.startswith(head):
        return None
    code = _CompiledFile(name, compiled, data).get_code(name)
    if code is None or code.co_filename != file:  # It was moved.
        return None
    spec = ModuleSpec(name, _OurLoader(name, file, code), origin=file)
    spec.has_location = True
    spec.cached = compiled
    spec.submodule_search_locations = [folder] if stem == "__init__" else None
    return spec


class _CompiledFile(SourcelessFileLoader):
    """Reads code from what was read of its file."""

    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self._data = data

    def get_data(self, path: str) -> bytes:
        return self._data


class _OurLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code: CodeType | None = code

    def exec_module(self, module: ModuleType) -> None:
        code, self._code = self._code, None
        if code is None:  # It is loaded again.
            super().exec_module(module)
        else:
            exec(code, vars(module))


class _LateModule(ModuleType):
    """A module that is imported when something is asked of it that is not known without it."""

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # What `from ... import` asks of every module.
            raise AttributeError(name)
        with _TAKING_OUT:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
        vars(self).update(vars(import_module(self.__name__)))
        self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(self, name)


_TAKING_OUT = allocate_lock()


def _cleandoc(text: str) -> str:
    """As in `inspect`, where Click calls it for the help of each option."""
    first, *rest = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in rest)]).strip("\n")


def _system() -> str:
    """As in `platform`, where `uuid` calls it while it is imported."""
    return os.uname().sysname


_LATE: dict[str, dict[str, Callable[..., str]]] = {
    "ast": {},
    "difflib": {},
    "inspect": {"cleandoc": _cleandoc},
    "ipaddress": {},
    "msgspec.inspect": {},
    "msgspec.msgpack": {},
    "msgspec.toml": {},
    "msgspec.yaml": {},
    "platform": {"system": _system} if hasattr(os, "uname") else {},
    "textwrap": {},
}
"""Modules that Click, msgspec, the standard library and we name at the top, and few commands use;
with what is known of them without importing them. They would be a tenth of a small command."""


def _put_late_modules() -> None:
    for name, known in _LATE.items():
        if name not in sys.modules:
            sys.modules[name] = _LateModule(name)
            vars(sys.modules[name]).update(known)


def _import_msgspec() -> None:
    """Without `typing_extensions`: of that msgspec takes, where it is installed, what `typing` has
    had since Python 3.11, and importing it is a thirtieth of a small command."""
    name = "typing_extensions"
    if sys.version_info < (3, 11) or name in sys.modules:
        return
    sys.modules[name] = None
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]
