"""The folder that runs live in: make one, list them, find one by prefix, remove them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from compilescope.base.errors import ToolError
from compilescope.base.outputs import part_of
from compilescope.base.settings import DEFAULT_DIR, made_runs_file
from compilescope.record.header import FILE_NAME, RunHeader, read_header, write_header
from compilescope.record.provenance import seal_run

_NO_RUNS = "Record one with `compilescope run SCRIPT`."


def new_run_id(label: str) -> str:
    """Random digits first, so that a few of them are enough to name the run."""
    stem = "".join(c if c.isalnum() else "-" for c in label).strip("-")[:24].lower()
    return f"{os.urandom(3).hex()}-{stem or 'run'}"


def make_home(home: Path) -> None:
    """The folder for runs. Git is to leave it out where it is ours: made here, or by its name. In a
    folder of the user's, git does what the user says."""
    ours = home.name == DEFAULT_DIR or not home.exists()
    home.mkdir(parents=True, exist_ok=True)
    if ours:
        hide_from_git(home)


def hide_from_git(folder: Path) -> None:
    """Have git leave out a folder of ours, as caches of other tools do; a file that says what git
    does there is left as it is."""
    with suppress(FileExistsError), (folder / ".gitignore").open("x") as file:
        file.write("*\n")


def create_run(home: Path, header: RunHeader) -> Path:
    folder = home / header.run
    try:
        make_home(home)
        folder.mkdir()
        write_header(folder, header)
    except OSError as error:
        raise ToolError(
            f"Cannot write the run under {home}: {error.strerror}.",
            hint="Choose another folder with --dir or COMPILESCOPE_DIR.",
        ) from None
    seal_run(folder, header)
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
    if wanted == "":
        raise ToolError("The run's ID is empty.", hint="`compilescope runs` lists them.")
    if wanted and (Path(wanted) / FILE_NAME).is_file():
        return Path(wanted)
    runs, unreadable = list_runs(home)
    if wanted is None:
        if runs:
            return runs[0][0]
        if unreadable:
            raise ToolError(unreadable[0][1])
        raise ToolError(f"There are no runs in {home}.", hint=_NO_RUNS)
    # A folder may have another name than its run: one that was copied or renamed.
    names: dict[Path, tuple[str, ...]]
    names = {folder: (folder.name, header.run) for folder, header in runs}
    names |= {folder: (folder.name,) for folder, _ in unreadable}
    exact = [folder for folder, known in names.items() if wanted in known]
    by_start = (f for f, known in names.items() if any(n.startswith(wanted) for n in known))
    matches = exact or list(by_start)
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise ToolError(
            f"No run in {home} starts with {wanted!r}.",
            hint="`compilescope runs` lists them." if names else _NO_RUNS,
        )
    shown = ", ".join(folder.name for folder in matches[:5])
    more = f" and {len(matches) - 5} more" if len(matches) > 5 else ""
    raise ToolError(
        f"{wanted!r} matches {len(matches)} runs: {shown}{more}.",
        hint="Give more of the ID, or the folder's path.",
    )


def remove_run(folder: Path) -> None:
    """All of it or, where it can't be taken out of its folder, nothing. Of a link only the link."""
    import shutil

    try:
        if folder.is_symlink():
            folder.unlink()
            return
        aside = folder.rename(part_of(folder))
        shutil.rmtree(aside)
    except OSError as error:
        raise ToolError(f"Cannot delete {folder}: {error.strerror}.") from None
