"""`--python PATH`: the command goes on in another Python, one that has torch.

Whoever keeps compilescope apart (pipx, uv tool) has torch elsewhere. This process becomes that
Python, in the same folder and with the same arguments, terminal and process id: programs, their
versions and workers then all run there, as if compilescope were installed there too. For that, the
packages which that Python lacks are linked in a folder of their own, at the end of PYTHONPATH; what
it has itself, it keeps.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from compilescope.base.errors import ToolError
from compilescope.base.package import PACKAGE
from compilescope.base.processes.child_signal import as_inherited
from compilescope.base.settings import cache_folder, environment_with_packages

_OLDEST = (3, 10)
"""`requires-python` of pyproject.toml, which a test compares."""
_ANSWER_S = 60.0
"""For a Python to say what it is. Chosen: most need 0.1 s, one on a busy network disk far more."""
_ASK = """
import sys
sys.path.pop(0)
import json
names, has = json.loads(sys.argv[1]), {}
try:
    from importlib import metadata
except ImportError:
    names = []
for name in names:
    try:
        has[name] = metadata.version(name)
    except Exception:
        pass
import sysconfig
print(json.dumps({
    "executable": sys.executable, "prefix": sys.prefix, "version": list(sys.version_info[:3]),
    "suffix": sysconfig.get_config_var("EXT_SUFFIX") or "", "has": has,
}))
"""
_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[.*?\])?\s*\(?(?:>=\s*([\d.]+))?")
_MARKER = re.compile(r"""python_version < ['"]([\d.]+)""")
_COMPILED = {"libcst": "libcst.native"}
"""Packages that load without their compiled module and then fail."""
_START = "from compilescope.__main__ import command\n\ncommand()\n"


def is_linked() -> bool:
    """Are we what `become` has started?"""
    return Path(*sys.orig_argv[1:2]).is_relative_to(_views())


class OtherPython(NamedTuple):
    """What a Python says of itself."""

    executable: str
    prefix: str
    version: tuple[int, ...]
    suffix: str
    """Of the extension modules that it loads."""
    has: dict[str, str]
    """Distributions that it has, of those it was asked about, with their versions."""

    @property
    def named(self) -> str:
        return f"{self.executable} (Python {'.'.join(map(str, self.version[:2]))})"


def become(path: str) -> None:
    """Never returns, unless that Python is the one that runs."""
    ours = _distributions()
    python = ask(path, list(ours))
    if python.prefix == sys.prefix:
        return
    _check(python, ours)
    view = _view({name: each for name, each in ours.items() if name not in python.has})
    packages = view / "site-packages"
    environment = environment_with_packages(packages)
    if python.suffix != sysconfig.get_config_var("EXT_SUFFIX"):
        _check_extensions(python, environment)
    as_inherited()
    words = [python.executable, str(view / "bin" / "compilescope"), *sys.argv[1:]]
    try:
        os.execve(python.executable, words, environment)
    except OSError as error:
        raise ToolError(f"Cannot start {python.executable}: {error.strerror}.") from None


def ask(path: str, names: list[str]) -> OtherPython:
    """Raises `ToolError` where `path` is no Python."""
    file = _interpreter(path)
    try:
        done = subprocess.run(
            [file, "-c", _ASK, json.dumps(names)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            check=False,
        )
        answer = json.loads(done.stdout.splitlines()[-1])
        version = tuple(answer.pop("version"))
        return OtherPython(version=version, **answer)
    except OSError as error:
        raise ToolError(f"Cannot start {file}: {error.strerror}.") from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"{file} did not answer within {_ANSWER_S:g} s.") from None
    except (IndexError, ValueError, TypeError, KeyError, AttributeError):
        hint = "--python takes the path of a Python interpreter or of a virtual environment."
        raise ToolError(f"{file} is not a working Python.", hint) from None


def _interpreter(path: str) -> str:
    """A file, the one in a virtual environment's folder, or a name on PATH."""
    if os.path.isdir(path):
        for inside in ("bin/python", "Scripts/python.exe"):
            if os.path.isfile(found := os.path.join(path, inside)):
                return os.path.abspath(found)
        raise ToolError(f"{path} is not a virtual environment: it has no bin/python.")
    if os.path.exists(path):
        return os.path.abspath(path)
    found_here = shutil.which(path) if os.sep not in path else None
    if found_here is None:
        raise ToolError(f"There is no Python {path}.")
    return found_here


def _distributions() -> dict[str, metadata.Distribution]:
    """What compilescope needs, and what that needs in turn, as far as it is installed here."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [name for name, _ in _requirements("compilescope")]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # For another version of Python, or another system.
        waiting += [each for each, _ in _requirements(name)]
    return found


def _requirements(
    name: str, version: tuple[int, ...] = sys.version_info[:2]
) -> Iterator[tuple[str, str]]:
    """Names and least versions for a version of Python, without the extras."""
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        raise ToolError(
            "--python needs an installed compilescope.", "Install it with `pip install ...`."
        ) from None
    for line in lines:
        match, marker = _REQUIREMENT.match(line), line.partition(";")[2]
        below = _MARKER.search(marker)
        applies = below is None or version < _numbers(below[1])
        if match is not None and applies and "extra" not in marker:
            yield match[1].lower(), match[2] or ""


def _check(python: OtherPython, ours: dict[str, metadata.Distribution]) -> None:
    if python.version < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise ToolError(f"{python.named} is too old: compilescope needs Python {oldest}.")
    for name, least in _requirements("compilescope"):
        there = python.has.get(name)
        if name in ours and there is not None and _numbers(there) < _numbers(least):
            raise ToolError(
                f"{python.named} has {name} {there}, and compilescope needs {least} or newer.",
                f'Upgrade it with `{python.executable} -m pip install "{name}>={least}"`.',
            )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def _check_extensions(python: OtherPython, environment: dict[str, str]) -> None:
    """Compiled modules of one Python don't load in another. Some packages do without theirs, so
    that it has to be tried."""
    names = [name for name, _ in _requirements("compilescope", python.version)]
    code = "import importlib, sys\nsys.path.pop(0)\nfor name in sys.argv[1:]:\n"
    code += "    try:\n        importlib.import_module(name)\n"
    code += "    except ImportError:\n        print(name)\n"
    done = subprocess.run(
        [python.executable, "-c", code, *(_COMPILED.get(name, name) for name in names)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [name for name in names if _COMPILED.get(name, name) in done.stdout.split()]
    if failed:
        here = ".".join(map(str, sys.version_info[:2]))
        pip = f"{python.executable} -m pip install"
        raise ToolError(
            f"{python.named} cannot load {', '.join(failed)} of compilescope's Python {here}.",
            f"Install them there with `{pip} {' '.join(failed)}`, or compilescope itself with "
            f"`{pip} compilescope`.",
        )


def _views() -> Path:
    return cache_folder() / "pythons"


def _view(missing: dict[str, metadata.Distribution]) -> Path:
    """A folder with links to compilescope and these; the same one for the same links."""
    links = dict(sorted({**_links(missing), **_own_links()}.items()))
    digest = hashlib.sha256(json.dumps(links).encode()).hexdigest()[:16]
    view = _views() / digest
    if (view / "bin" / "compilescope").is_file():
        return view
    try:
        _views().mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=_views()))
        # By this name its files count as installed ones in every report.
        (made / "site-packages").mkdir()
        for name, target in links.items():
            (made / "site-packages" / name).symlink_to(target)
        (made / "bin").mkdir()
        (made / "bin" / "compilescope").write_text(_START)
        _put(made, view)
    except OSError as error:
        raise ToolError(f"{_views()} cannot be written: {error.strerror}.") from None
    return view


def _put(made: Path, view: Path) -> None:
    try:
        os.rename(made, view)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not view.is_dir():  # Else another command was faster.
            raise


def _links(distributions: dict[str, metadata.Distribution]) -> dict[str, str]:
    """Name in site-packages -> where it is."""
    return {
        top: os.path.abspath(str(each.locate_file(top)))
        for each in distributions.values()
        for top in {file.parts[0] for file in each.files or ()}
        if top not in ("..", "__pycache__") and not top.endswith(".pth")
    }


def _own_links() -> dict[str, str]:
    """The package may lie in a checkout. Its metadata name our backends to torch."""
    package = Path(PACKAGE)
    own = _links({"compilescope": metadata.distribution("compilescope")})
    told = {name: path for name, path in own.items() if name.endswith(".dist-info")}
    return {**told, package.name: str(package)}
