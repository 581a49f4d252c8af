"""The folder that runs live in: make one, list them, find one by prefix, remove them."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from compilescope.errors import ToolError
from compilescope.model.header import FILE_NAME, RunHeader, read_header, write_header
from compilescope.settings import made_runs_file

_NO_RUNS = "Record one with `compilescope run SCRIPT`."


def new_run_id(label: str) -> str:
    """Random digits first, so that a few of them are enough to name the run."""
    stem = "".join(c if c.isalnum() else "-" for c in label).strip("-")[:24].lower()
    return f"{os.urandom(3).hex()}-{stem or 'run'}"


def create_run(home: Path, header: RunHeader) -> Path:
    folder = home / header.run
    try:
        folder.mkdir(parents=True)
        (home / ".gitignore").write_text("*\n")
        write_header(folder, header)
    except OSError as error:
        raise ToolError(
            f"Cannot write the run under {home}: {error.strerror}.",
            hint="Choose another folder with --dir or COMPILESCOPE_DIR.",
        ) from None
    note_made(folder)
    return folder


def is_run_name(name: str) -> bool:
    """What begins with a dot is the tool's own: a run being imported, jobs, an index."""
    return not name.startswith(".")


def note_made(folder: Path) -> None:
    """Tell whoever asked for it (COMPILESCOPE_MADE_RUNS) that this run is there now."""
    file = made_runs_file()
    if file is None:
        return
    # Appended in one piece: commands that run side by side may share the file.
    with suppress(OSError), file.open("ab") as opened:
        opened.write(os.fsencode(f"{folder.absolute()}\n"))


def list_runs(home: Path) -> tuple[list[tuple[Path, RunHeader]], list[tuple[Path, str]]]:
    """The runs, newest first, and the folders that could not be read, each with the reason."""
    runs: list[tuple[Path, RunHeader]] = []
    unreadable: list[tuple[Path, str]] = []
    try:
        folders = [path for path in home.iterdir() if is_run_name(path.name) and path.is_dir()]
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise ToolError(f"Cannot read {home}: {error.strerror}.") from None
    for folder in folders:
        try:
            runs.append((folder, read_header(folder)))
        except ToolError as error:
            unreadable.append((folder, error.message))
    runs.sort(key=lambda item: item[1].started_ns, reverse=True)
    return runs, sorted(unreadable)


def find_run(home: Path, wanted: str | None) -> Path:
    """The run called `wanted`: a folder, an id, the start of one, or None for the latest."""
    if wanted and (Path(wanted) / FILE_NAME).is_file():
        return Path(wanted)
    runs, unreadable = list_runs(home)
    if wanted is None:
        if runs:
            return runs[0][0]
        if unreadable:
            raise ToolError(unreadable[0][1])
        raise ToolError(f"There are no runs in {home}.", hint=_NO_RUNS)
    folders = [folder for folder, _ in runs] + [folder for folder, _ in unreadable]
    exact = [folder for folder in folders if folder.name == wanted]
    matches = exact or [folder for folder in folders if folder.name.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise ToolError(
            f"No run in {home} starts with {wanted!r}.",
            hint="`compilescope list` shows the runs." if folders else _NO_RUNS,
        )
    names = ", ".join(folder.name for folder in matches[:5])
    raise ToolError(f"{wanted!r} matches {len(matches)} runs: {names}.")


def remove_run(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise ToolError(f"Cannot delete {folder}: {error.strerror}.") from None
