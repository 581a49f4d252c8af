"""The header of a run: who started what, when, and how it ended.

Written when the run begins and once more, as a whole, when it ends. A header without an end is
a run that goes on or was cut short.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import msgspec

from compilescope.errors import ToolError
from compilescope.model.plain_files import read_plain

SCHEMA = 1
FILE_NAME = "run.json"


class RunHeader(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One run."""

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


def write_header(folder: Path, header: RunHeader) -> None:
    # schema is a default, but it must be in the file: it is what a newer version looks at first.
    data = {"schema": header.schema, **msgspec.to_builtins(header)}
    part = folder / f"{FILE_NAME}.{os.getpid()}.part"
    part.write_bytes(msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n")
    part.replace(folder / FILE_NAME)


def read_header(folder: Path) -> RunHeader:
    path = folder / FILE_NAME
    try:
        data = json.loads(read_plain(path))
    except FileNotFoundError:
        raise ToolError(
            f"{folder} is not a run: it has no {FILE_NAME}.",
            hint="`compilescope list` shows the runs.",
        ) from None
    except OSError as error:
        raise ToolError(f"The run in {folder} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise ToolError(f"The header {path} is damaged: it is not JSON.") from None
    check_schema(data.get("schema") if isinstance(data, dict) else None, path)
    try:
        return msgspec.convert(data, RunHeader)
    except msgspec.ValidationError as error:
        raise ToolError(f"The header {path} is damaged: {error}.") from None


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
