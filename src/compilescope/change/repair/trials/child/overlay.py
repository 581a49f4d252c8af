"""Other texts for some files, under the files' own names: nothing on disk changes.

Modules come through a finder, the main script through the way in which Python runs a zip file, and
tracebacks, `inspect` and everybody else who wants source lines through `linecache`.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import runpy
import signal
import sys
import traceback
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from typing import Any

from compilescope.change.repair.trials.child.moved_regions import Moved, put_back
from compilescope.change.repair.trials.child.truths import note_truths

_OURS = __name__.rpartition(".child")[0]


class Overlay:
    """The texts, by the paths that the program may know the files by."""

    def __init__(
        self,
        files: Mapping[str, str],
        moved: Mapping[str, Moved] | None = None,
        absent: Collection[str] = (),
        noted: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        """`moved`: by file, what a replay is to compile as the original did. `absent`: modules that
        are on disk and not to be found. `noted`: by file, lines whose conditions are noted."""
        self._noted = {os.path.realpath(path): each for path, each in (noted or {}).items()}
        self._moved = {os.path.realpath(path): each for path, each in (moved or {}).items()}
        self._texts = dict(files)
        self._real = {os.path.realpath(path): text for path, text in files.items()}
        self._absent = {os.path.realpath(path) for path in absent}
        paths = [*self._texts, *self._real, *absent]
        self._names = {_module_name(path) for path in paths}

    @property
    def paths(self) -> set[str]:
        """The files themselves, no links to them."""
        return set(self._real)

    def text(self, path: str) -> str | None:
        path = os.path.abspath(path)
        if path in self._texts:
            return self._texts[path]
        return self._real.get(os.path.realpath(path)) if self._texts else None

    def code(self, path: str, text: str | bytes) -> types.CodeType:
        """Of a text or, where Python is to find out how to read it, of bytes."""
        moved = self._moved.get(os.path.realpath(path))
        noted = self._noted.get(os.path.realpath(path))
        read: Any = put_back(text, path, moved) if moved and isinstance(text, str) else text
        if noted and isinstance(text, str):
            tree = ast.parse(read, path) if isinstance(read, str) else read
            read = note_truths(tree, path, noted)
        return compile(read, path, "exec", dont_inherit=True)

    def may_be(self, module: str) -> bool:
        """Could the module be one of the files? A cheap look, since every import asks."""
        return module.rpartition(".")[2] in self._names

    def is_absent(self, path: str) -> bool:
        return bool(self._absent) and os.path.realpath(path) in self._absent

    def new_module(self, name: str, folders: Iterable[str]) -> str | None:
        """The path of a module that is in none of these folders but would be with our texts."""
        last = name.rpartition(".")[2]
        for folder in folders:
            for tail in ((last, "__init__.py"), (f"{last}.py",)):
                path = os.path.join(os.path.abspath(folder or os.curdir), *tail)
                if self.text(path) is not None and not os.path.exists(path):
                    return path
        return None

    def install(self) -> None:
        if not (self._texts or self._absent):
            return
        sys.meta_path.insert(0, _Finder(self))
        _serve_lines(self)
        _serve_main(self)


def _module_name(path: str) -> str:
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.basename(os.path.dirname(path)) if stem == "__init__" else stem


class _Loader(SourceFileLoader):
    """Compiles the new text, past the cache of byte code."""

    def __init__(self, fullname: str, path: str, text: str, overlay: Overlay) -> None:
        super().__init__(fullname, path)
        self._text = text
        self._overlay = overlay

    def get_source(self, fullname: str) -> str:
        return self._text

    def get_data(self, path: Any) -> bytes:
        return self._text.encode() if path == self.path else super().get_data(path)

    def get_code(self, fullname: str) -> types.CodeType:
        # Text, not bytes: what its first line says of an encoding does not hold any more.
        return self._overlay.code(self.path, self._text)


class _Finder:
    """Asks all others where a module is, and gives it another loader if it is one of ours."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not self._overlay.may_be(fullname):
            return None
        folders = [each for each in (sys.path if path is None else path) if isinstance(each, str)]
        new = self._overlay.new_module(fullname, folders)
        if new is not None:
            return self._spec_of_new(fullname, new)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(fullname, path, target)
            if spec is not None and spec.origin and self._overlay.is_absent(spec.origin):
                # As where the file is gone: another folder may hold a module of that name.
                gone = os.path.dirname(os.path.abspath(spec.origin))
                left = [each for each in folders if os.path.abspath(each or os.curdir) != gone]
                spec = PathFinder.find_spec(fullname, left)
                if spec is None:
                    raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
            if spec is not None:
                return self._with_text(spec)
        return None

    def _spec_of_new(self, fullname: str, path: str) -> ModuleSpec | None:
        text = self._overlay.text(path)
        assert text is not None
        is_package = os.path.basename(path) == "__init__.py"
        spec = spec_from_file_location(
            fullname,
            path,
            loader=_Loader(fullname, path, text, self._overlay),
            submodule_search_locations=[os.path.dirname(path)] if is_package else None,
        )
        if spec is not None:
            spec.cached = None
        return spec

    def _with_text(self, spec: ModuleSpec) -> ModuleSpec:
        text = self._overlay.text(spec.origin) if spec.has_location and spec.origin else None
        if text is not None and spec.origin is not None:
            spec.loader = _Loader(spec.name, spec.origin, text, self._overlay)
            spec.cached = None
        return spec

    def invalidate_caches(self) -> None:
        """Nothing is cached."""


def _serve_lines(overlay: Overlay) -> None:
    """linecache looks at the disk first; an entry without a time is never checked again."""
    update = linecache.updatecache

    def updatecache(filename: str, module_globals: Any = None) -> list[str]:
        # `<string>` and the like are no paths.
        text = None if filename.startswith("<") else overlay.text(filename)
        if text is None:
            return update(filename, module_globals)
        lines = text.splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        linecache.cache[filename] = (len(text), None, lines, filename)
        return lines

    linecache.updatecache = updatecache


def _serve_main(overlay: Overlay) -> None:
    """Python asks `sys.path_hooks` whether the script can be imported from, as a zip file can; if
    so it leaves the rest to runpy. A script whose text is ours is claimed there."""
    claimed: list[str] = []
    # Python itself and multiprocessing call these two by name.
    runner: Any = runpy
    run_module, code_of = runner._run_module_as_main, runner._get_code_from_file

    def claim(path: str) -> Any:
        # Python itself asks before any code has run; whoever else asks wants the file.
        if claimed or _is_called() or not os.path.isfile(path) or overlay.text(path) is None:
            raise ImportError(path)
        claimed.append(path)
        return types.SimpleNamespace(find_spec=lambda name, target=None: None)

    def run_main(mod_name: str, alter_argv: bool = True) -> Any:
        if claimed and mod_name == "__main__" and not alter_argv:
            return run_script(claimed[0], overlay)
        return run_module(mod_name, alter_argv)

    def get_code(fname: str, *more: Any) -> Any:
        # multiprocessing's children import the main script by its path. Python 3.10 gives
        # (module's name, path), later ones the path alone.
        path = os.fsdecode(more[0] if more else fname)
        text = overlay.text(path)
        if text is None:
            return code_of(fname, *more)
        code = overlay.code(path, text)
        return (code, path) if more else code

    sys.path_hooks.insert(0, claim)
    runner._run_module_as_main = run_main
    runner._get_code_from_file = get_code


def _is_called() -> bool:
    """Did Python code call the function that asks?"""
    try:
        sys._getframe(2)
    except ValueError:
        return False
    return True


def run_script(path: str, overlay: Overlay) -> None:
    """As Python runs a script: its name, its folder, its globals, its way to die."""
    sys.path_importer_cache.pop(path, None)
    if sys.path and os.path.abspath(sys.path[0]) == os.path.abspath(path):
        del sys.path[0]
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    path = os.path.abspath(path)  # As Python names its main file since 3.9.
    text = overlay.text(path)
    loader = SourceFileLoader("__main__", path)
    if text is not None:
        loader = _Loader("__main__", path, text, overlay)
    main = sys.modules["__main__"]
    main.__dict__.update(
        __name__="__main__", __file__=path, __loader__=loader, __package__=None, __spec__=None
    )
    main.__dict__.setdefault("__cached__", None)
    with ending_as_python():
        exec(overlay.code(path, _source(path, text)), main.__dict__)


def _source(path: str, text: str | None) -> str | bytes:
    """Of a file on disk the bytes: it may say by itself how they are to be read."""
    if text is not None:
        return text
    with open(path, "rb") as stream:
        return stream.read()


@contextlib.contextmanager
def ending_as_python() -> Iterator[None]:
    """What nobody caught ends the process as it would without us."""
    try:
        yield
    except SystemExit:
        raise
    except BaseException as error:
        _die_of(error)


def _die_of(error: BaseException) -> None:
    """As Python would, without the frames that are ours."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    error = error.with_traceback(trace)
    if sys.excepthook is sys.__excepthook__:
        traceback.print_exception(error)  # The other one reads source lines off the disk.
    else:
        sys.excepthook(type(error), error, trace)
    sys.stdout.flush()
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(1)


def _is_ours(trace: types.TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__")).startswith(_OURS)
