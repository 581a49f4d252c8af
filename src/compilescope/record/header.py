"""The header of a run: who started what, when, and how it ended.

Written when the run begins and once more, as a whole, when it ends. A header without an end is
a run that goes on or was cut short.
"""

import os
import signal
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.texts import encodable, encode_json
from compilescope.record.plain_files import read_plain

SCHEMA = 1
"""Of the run's folder. A run with another one is refused, with words on which version reads it."""
FILE_NAME = "run.json"
_MOST = 1 << 63
"""What int64 holds."""
_LARGEST = 4 << 20
"""Bytes: the longest command line that Linux takes by default (2 MiB) is half of that."""


class RunHeader(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The header of one run."""

    schema: int = SCHEMA
    run: str
    """The run's id."""
    tool: str
    """The version of compilescope that wrote it."""
    command: tuple[str, ...] = ()
    """What the user asked to run."""
    cwd: str = ""
    root: str = ""
    """The folder that file names are shown relative to: the script's."""
    host: str = ""
    started_ns: int = 0
    launcher_pid: int | None = None
    main_pid: int | None = None
    """The program's own process."""
    ended_ns: int | None = None
    exit_status: int | None = None
    signal: int | None = None
    """The signal that ended the program."""
    automatic: bool = False
    """Left by a program that nobody asked to record."""


def write_header(folder: Path, header: RunHeader) -> None:
    # schema is a default, but it must be in the file: it is what a newer version looks at first.
    data = {"schema": header.schema, **msgspec.to_builtins(header)}
    part = folder / f"{FILE_NAME}.{os.getpid()}.part"
    part.write_bytes(msgspec.json.format(encode_json(data), indent=1) + b"\n")
    part.replace(folder / FILE_NAME)


def read_header(folder: Path) -> RunHeader:
    path = folder / FILE_NAME
    try:
        text = read_plain(path, most=_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ToolError(f"The header {path} is damaged: it is too large.")
        data = _values(text)
    except FileNotFoundError:
        raise ToolError(
            f"{folder} is not a run: it has no {FILE_NAME}.",
            hint="`compilescope runs` lists them.",
        ) from None
    except OSError as error:
        raise ToolError(f"The run in {folder} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise ToolError(f"The header {path} is damaged: it is not JSON.") from None
    check_schema(data.get("schema") if isinstance(data, dict) else None, path)
    try:
        # Only what is known: a key of somebody's may be half a character.
        known = {name: data[name] for name in RunHeader.__struct_fields__ if name in data}
        return _sound(msgspec.convert(known, RunHeader))
    except UnicodeError:
        raise ToolError(f"The header {path} is damaged: it is not UTF-8.") from None
    except (msgspec.ValidationError, _Impossible) as error:
        raise ToolError(f"The header {path} is damaged: {error}.") from None


def _values(text: bytes) -> Any:
    """As `json` reads it, which takes more than JSON (NaN, halves of characters)."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        import json

        return json.loads(text)


class _Impossible(ValueError):
    """No clock shows such a time."""


def _sound(header: RunHeader) -> RunHeader:
    """As it can be reckoned with and written again. Anyone may have written it, and JSON may hold
    any number and halves of characters."""
    fields = msgspec.structs.asdict(header)
    if not all(0 <= (fields[name] or 0) < _MOST for name in ("started_ns", "ended_ns")):
        raise _Impossible("it contains an impossible time")
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = encodable(value)
        elif isinstance(value, int) and abs(value) >= _MOST:
            fields[name] = 0  # No process has this number, and none ends with it.
    return RunHeader(**{**fields, "command": tuple(map(encodable, header.command))})


def check_schema(schema: object, path: Path) -> None:
    if schema == SCHEMA:
        return
    if isinstance(schema, int) and schema > SCHEMA:
        raise ToolError(
            f"{path} is from a newer compilescope (schema {schema}; this one reads {SCHEMA}).",
            hint="Upgrade compilescope to read it.",
        )
    if isinstance(schema, int):
        raise ToolError(
            f"{path} is from an older compilescope (schema {schema}; this one reads {SCHEMA}).",
            hint="Record the run again, or open it with the version that wrote it.",
        )
    raise ToolError(f"The header {path} is damaged: it has no schema.")


def signal_name(number: int | None) -> str | None:
    """`SIGKILL`; `signal 99` where this system knows no name for it."""
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
