"""Waits in a process of the user's program until it imports torch, then begins to record.

Runs in whatever Python the program starts, from its start, so it imports nothing that Python has
not imported by then, and a Python without compilescope is left in peace. That Python may be an
older one than ours: annotations that it could not evaluate are quoted.
"""

import atexit
import os
import sys

TYPE_CHECKING = False  # As type checkers read it: `typing` itself is not imported by then.
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec, PathFinder
    from types import ModuleType
    from typing import Any

_open, _close, _write_bytes, _getpid = os.open, os.close, os.write, os.getpid
"""As they were when Python started: a program that puts others in their place, a test's fakes say,
means its own calls."""
_own_path: "list[str]" = []
"""Where Python's own modules and installed packages are; not the user's folders. Ours counts also
where PYTHONPATH names it: `--python` puts what the program's Python lacks there."""
_given_path: "list[str]" = []
"""The folders of PYTHONPATH: the user's, though compilescope or a library of its may be there."""


def watch() -> None:
    """At the interpreter's start: the program's folder is not on the path yet."""
    here = os.path.dirname(os.path.abspath(__file__))
    home = os.path.abspath(os.path.join(here, *[os.pardir] * 4))  # Where the package lies.
    given = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    for path in sys.path:
        full = os.path.abspath(path or ".")
        if full != here:
            is_users = full in given and full != home
            (_given_path if is_users else _own_path).append(path)
    atexit.register(_note_end)
    sys.meta_path.insert(0, _AfterTorch())
    _mark("start")


def _mark(what: str) -> None:
    """In the run: `PID WHAT`. It then knows which processes it would have heard of."""
    folder = os.environ.get("COMPILESCOPE_RUN")
    if not folder:
        return
    try:
        # Only where the launcher has made it: a folder that is gone is not made again.
        file = _open(os.path.join(folder, "processes"), os.O_WRONLY | os.O_APPEND)
    except OSError:
        return
    try:
        _write(file, f"{_getpid()} {what}\n".encode("utf-8", "replace"))
    except OSError:
        pass
    finally:
        _close(file)


def _write(file: int, line: bytes) -> None:
    """Past a limit on the size of files the kernel sends SIGXFSZ. Python ignores it at first; where
    the program has changed that, it is kept from it: it is we who write."""
    signals: Any = sys.modules.get("_signal")
    number = getattr(signals, "SIGXFSZ", None)
    if number is None or signals.getsignal(number) in (signals.SIG_IGN, None):
        _write_bytes(file, line)
        return
    before = signals.pthread_sigmask(signals.SIG_BLOCK, [number])
    pending = signals.sigpending()
    try:
        _write_bytes(file, line)
    finally:
        for sent in signals.sigpending() - pending:
            if sent == number:
                signals.sigtimedwait([number], 0)
        signals.pthread_sigmask(signals.SIG_SETMASK, before)


class _AfterTorch:
    """Finds nothing itself: it lets the others find torch, and begins once torch has run."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name != "torch":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                if getattr(spec.loader, "exec_module", None) is not None:
                    _follow(spec.loader)
                return spec
        # A folder that has torch may be put on the path later.
        sys.meta_path.insert(0, self)
        return None


def _follow(loader: "Any") -> None:
    run = loader.exec_module

    def run_then_begin(module: "ModuleType") -> None:
        del loader.exec_module  # It has done its work: the loader is the module's own again.
        run(module)
        begin()

    # Python drops the import machinery's frames from tracebacks; this one is of their kind.
    run_then_begin.__code__ = run_then_begin.__code__.replace(
        co_filename="<frozen importlib._bootstrap>", co_name="_call_with_frames_removed"
    )
    loader.exec_module = run_then_begin


def begin() -> None:
    """torch is imported: record. The program comes first, whatever happens here."""
    _mark("torch")
    try:
        with OwnImports():
            from compilescope.base.processes.interruptions import programs_own
            from compilescope.instrument.recorder import autoload
    except ImportError as error:
        _mark(f"failed {sys.executable} has no working compilescope: {_words(error)}")
        return
    try:
        with OwnImports():
            autoload.begin()
    except Exception as error:
        own = programs_own(error)
        if own is not None:
            raise own from None
        _mark(f"failed {type(error).__name__}: {_words(error)}")


def _words(error: Exception) -> str:
    try:
        return " ".join(str(error).split())[:300]
    except Exception:
        return ""


class OwnImports:
    """While it holds, imports find our libraries and Python's own, whatever the program has under
    their names. Afterwards the program finds what it would without us."""

    def __enter__(self) -> None:
        self._path = list(sys.path)
        self._hidden = {name: sys.modules[name] for name in list(sys.modules) if _is_users(name)}
        for name in self._hidden:
            del sys.modules[name]
        self._before = set(sys.modules)
        sys.modules.update(_withdrawn)
        last = [path for path in self._path if path not in _own_path and path not in _given_path]
        sys.path[:] = _own_path + _given_path + last

    def __exit__(self, *_: object) -> None:
        sys.path[:] = self._path
        new = {name.partition(".")[0] for name in set(sys.modules) - self._before}
        for name in new & _NAMES:
            if name in self._hidden or self._finds_another(name):
                _withdraw(name)
        sys.modules.update(self._hidden)

    def _finds_another(self, name: str) -> bool:
        """Has the program, in a folder that comes first, another module of this name?"""
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None:
            return False
        spec = _find(name, self._path)
        return spec is not None and spec.origin not in (None, file)


_NAMES = {"compilescope", "msgspec"} | set(getattr(sys, "stdlib_module_names", ()))
"""What we and our libraries import."""


def _is_users(name: str) -> bool:
    """A module of the program's, under a name that we need for another one."""
    top = name.partition(".")[0]
    if top not in _NAMES or name == "__main__":
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str):
        return False
    if file.startswith(tuple(os.path.join(path, "") for path in _own_path if path)):
        return False
    spec = _find(top, _own_path)
    return spec is not None and spec.origin != getattr(sys.modules.get(top), "__file__", None)


def _find(name: str, path: "list[str]") -> "ModuleSpec | None":
    finder: type[PathFinder] = sys.modules["_frozen_importlib_external"].PathFinder
    return finder.find_spec(name, path)


def _is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


_withdrawn: "dict[str, ModuleType]" = {}
"""Modules of ours whose names the program has for its own."""


def _withdraw(name: str) -> None:
    """Our modules keep what they have imported; the program imports its own."""
    for each in [each for each in list(sys.modules) if _is_within(each, name)]:
        # What is below our own package is found by its full name.
        if each == name or name != "compilescope":
            _withdrawn[each] = sys.modules.pop(each)


def _note_end() -> None:
    """Have the exception written that ended the program before it imported torch."""
    _mark("end")
    error = getattr(sys, "last_value", None)
    # An import may evaluate strings, and whoever does so makes Python forget that it was
    # interrupted: it would leave with status 1 and not by the signal.
    if error is None or isinstance(error, KeyboardInterrupt):
        return
    # Whatever happens here, the program has ended as it did: nobody is left to raise to.
    try:
        with OwnImports():
            from compilescope.instrument.recorder import process_end
        process_end.note_uncaught()
    except BaseException:
        pass
