"""What the project asks for: `[tool.compilescope]` of its pyproject.toml.

The command line wins over what stands here. A key that is not known, or a value of the wrong kind,
is an error: a limit that nobody reads is a limit that never fails.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from compilescope.base.errors import ToolError

FILE_NAME = "pyproject.toml"
TABLE = "tool.compilescope"
_MOST = 10**18
"""Nobody counts further, and it can be divided and printed."""


class Project(NamedTuple):
    """The limits of the gate, and where links lead. None: the project does not say."""

    file: Path | None = None
    """The pyproject.toml they stand in; None where no file has the table."""
    max_breaks: int | None = None
    max_recompiles: int | None = None
    max_graphs: int | None = None
    max_eager: int | None = None
    max_failures: int | None = None
    max_violations: int | None = None
    max_differences: int | None = None
    min_coverage: float | None = None
    """Percent."""
    max_slowdown: float | None = None
    """Of a benchmark: at most so many times the time of eager mode, or of an earlier run."""
    own: bool | None = None
    """Count only causes in the user's own files."""
    baseline: Path | None = None
    """Named relative to the folder of `file`, given here as a path that can be opened."""
    registry_site: str | None = None
    """Where the registry is published as a site: links to graph breaks lead there."""


def read_project(folder: Path | None = None) -> Project:
    """The table nearest to `folder` (the current one): there, or in a folder above it.

    The search ends with the folder that holds a repository: what lies above is another project.
    """
    start = (folder if folder is not None else Path.cwd()).absolute()
    for place in (start, *start.parents):
        file = place / FILE_NAME
        table = _table(file)
        if table is not None:
            return _project(file, table)
        if (place / ".git").exists():
            break
    return Project()


def _table(file: Path) -> dict[str, Any] | None:
    """The table in `file`; None where there is no such file, or no such table in it."""
    try:
        # Where a folder or a pipe has its name, there is no such file.
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        text = file.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise ToolError(f"{file} is not valid TOML: it is not UTF-8.") from None
    except OSError as error:
        raise ToolError(f"{file} cannot be read: {error.strerror}.") from None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        data: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ToolError(f"{file} is not valid TOML: {error}.") from None
    except RecursionError:
        raise ToolError(f"{file} is not valid TOML: it is nested too deeply.") from None
    except ValueError:  # Python's own limit, which its reader does not know.
        raise ToolError(f"{file} is not valid TOML: a number has too many digits.") from None
    for key in TABLE.split("."):
        data = data.get(key) if isinstance(data, dict) else None
    if data is None or isinstance(data, dict):
        return data
    raise ToolError(f"{TABLE} in {file} is not a table.", hint=f"Write it as [{TABLE}].")


def _project(file: Path, table: dict[str, Any]) -> Project:
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        reader = _READERS.get(name)
        if reader is None:
            raise _unknown(file, key)
        if name in values:
            raise ToolError(
                f"[{TABLE}] in {file} has {key} twice: with a hyphen and with an underscore."
            )
        try:
            values[name] = reader(value)
        except ValueError as wanted:
            shown = _shown(value)
            raise ToolError(f"{key} in [{TABLE}] of {file} is {shown}, not {wanted}.") from None
    if "baseline" in values:
        values["baseline"] = file.parent / values["baseline"]
    return Project(file=file, **values)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # In TOML's hexadecimal, a number may have more digits than Python writes.
        return "a number with too many digits"
    return text if len(text) <= 60 else f"{text[:59]}…"


def _unknown(file: Path, key: str) -> ToolError:
    keys = [name.replace("_", "-") for name in _READERS]
    import difflib

    near = difflib.get_close_matches(key.replace("_", "-").lower(), keys, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else f"The keys are: {', '.join(keys)}."
    return ToolError(f"[{TABLE}] in {file} has an unknown key, {_shown(key)}.", hint=hint)


def _count(value: Any) -> int:
    # To Python, True is a number.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    raise ValueError("a whole number of at least 0")


def _percent(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100:
        return float(value)
    raise ValueError("a number from 0 to 100")


def _factor(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and 0 < value <= _MOST:
        return float(value)
    raise ValueError("a number above 0")


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def _path(value: Any) -> Path:
    if isinstance(value, str) and value.strip() and "\0" not in value:
        return Path(value)
    raise ValueError("a file name")


def _address(value: Any) -> str:
    if isinstance(value, str) and value.startswith(("https://", "http://")):
        return value
    raise ValueError("an http or https URL")


_READERS: dict[str, Callable[[Any], Any]] = {
    "max_breaks": _count,
    "max_recompiles": _count,
    "max_graphs": _count,
    "max_eager": _count,
    "max_failures": _count,
    "max_violations": _count,
    "max_differences": _count,
    "min_coverage": _percent,
    "max_slowdown": _factor,
    "own": _flag,
    "baseline": _path,
    "registry_site": _address,
}
