"""A copy of torch to look into: a wheel, a checkout or an installation, or its table alone.

Nothing is installed, unpacked or imported: files are read where they are, each up to a limit.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from compilescope.errors import ToolError
from compilescope.registry.table import (
    BIGGEST_BYTES,
    PLACE,
    Registry,
    load_registry,
    parse_registry,
    version_in,
)

_WHEEL_TABLE = f"torch/{PLACE.as_posix()}"
_DYNAMO = "torch/_dynamo/"
_RELEASE = re.compile(r"\d+\.\d+(?:[^\d\s]\S*)?")


def read_table(source: Path) -> Registry:
    """The table of graph breaks in a wheel, a folder or a JSON file."""
    if source.is_dir():
        return _folder_table(source)
    if _is_zip(source):
        return _wheel_table(source)
    return load_registry(source)


def dynamo_sources(source: Path) -> Iterator[tuple[str, str]]:
    """The Python files of Dynamo in a wheel or a folder: name and text. None for a table alone."""
    if source.is_dir():
        folder = _torch_folder(source)
        for path in sorted((folder / "_dynamo").rglob("*.py")) if folder else ():
            yield path.relative_to(folder or path).as_posix(), _text(path.read_bytes())
    elif _is_zip(source):
        with _open(source) as wheel:
            for name in sorted(wheel.namelist()):
                if name.startswith(_DYNAMO) and name.endswith(".py"):
                    data = _member(wheel, name, source)
                    yield name.removeprefix("torch/"), _text(data)


def torch_of(table: Registry) -> Path | None:
    """The folder of the torch that a table lies in; None for a table that stands alone."""
    path = Path(table.path)
    # Inside a wheel it has the same name, and no folder.
    inside = path.parent.name == PLACE.parent.name and path.parent.is_dir()
    return path.parent.parent if inside else None


def _torch_folder(source: Path) -> Path | None:
    places = (source / "torch", source, source / "src" / "torch")
    return next((place for place in places if (place / "_dynamo").is_dir()), None)


def _folder_table(source: Path) -> Registry:
    folder = _torch_folder(source)
    path = folder / PLACE if folder else source / PLACE.name
    if not path.is_file():
        raise ToolError(
            f"{source} contains no torch with a graph-break table.",
            f"Its place there is {_WHEEL_TABLE}; torch has it since 2.8.",
        )
    found = load_registry(path)
    if found.torch is None and folder is not None:
        # A checkout that was never built has no version.py, only version.txt.
        return Registry(found.entries, found.path, _version_text(folder.parent / "version.txt"))
    return found


def _version_text(path: Path) -> str | None:
    try:
        found = _RELEASE.fullmatch(path.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        return None
    return found[0] if found else None


def _is_zip(source: Path) -> bool:
    try:
        return source.suffix == ".whl" or zipfile.is_zipfile(source)
    except OSError:
        return False


def _open(source: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except FileNotFoundError:
        raise ToolError(f"There is no file {source}.") from None
    except OSError as error:
        raise ToolError(f"{source} could not be read: {error.strerror or error}.") from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ToolError(f"{source} is not a complete wheel: {error}.") from None


def _wheel_table(source: Path) -> Registry:
    with _open(source) as wheel:
        names = set(wheel.namelist())
        if _WHEEL_TABLE not in names:
            raise ToolError(
                f"The wheel {source} contains no graph-break table.",
                "It is not a torch wheel, or it is older than 2.8.",
            )
        data = _member(wheel, _WHEEL_TABLE, source)
        version = None
        if "torch/version.py" in names:
            version = version_in(_text(_member(wheel, "torch/version.py", source)))
    return parse_registry(data, f"{source}/{_WHEEL_TABLE}", version)


def _member(wheel: zipfile.ZipFile, name: str, source: Path) -> bytes:
    """Never more than the limit, whatever size the wheel claims."""
    try:
        with wheel.open(name) as stream:
            data = stream.read(BIGGEST_BYTES + 1)
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, EOFError, zlib.error) as error:
        raise ToolError(f"{name} in {source} could not be read: {error}.") from None
    if len(data) > BIGGEST_BYTES:
        limit = BIGGEST_BYTES // 1024 // 1024
        raise ToolError(f"{name} in {source} is larger than {limit} MB.")
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
