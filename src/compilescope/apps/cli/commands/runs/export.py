"""`compilescope runs export`: a run as one file to hand to somebody."""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compilescope.apps.cli.options import RUN_NAME, dir_option, home_folder, json_option, print_json
from compilescope.apps.cli.progress import working
from compilescope.base.errors import ToolError
from compilescope.base.texts import file_stem

if TYPE_CHECKING:
    from compilescope.record.run import Run

_AT_ONCE = 1 << 20
"""Bytes of a file that are searched for names at a time. Chosen: it bounds memory."""


@click.command("export", short_help="Pack a run into one file, optionally without your names.")
@click.argument("run", required=False, type=RUN_NAME)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Output file. [default: the run's id plus .zip]",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Replace your paths, names, constants and source; causes and counts stay.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@json_option
@dir_option
def COMMAND(
    run: str | None,
    output: Path | None,
    redact: bool,
    force: bool,
    as_json: bool,
    home: Path | None,
) -> None:
    """Pack RUN (default: the latest) into a zip file that `compilescope runs import` reads."""
    from compilescope.record.home import find_run
    from compilescope.record.run import read_run
    from compilescope.record.run_files import note_product
    from compilescope.report.sharing.archive import write_archive

    stored = folder = find_run(home_folder(home), run)
    with working("export", "reading the run"):
        read = read_run(folder)
    if read.live:
        print(
            "The run is still in progress: the file holds what was recorded so far.",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory(prefix="compilescope-") as scratch:
        name, same = read.header.run, None
        if redact:
            folder = Path(scratch)
            name, same = _redacted(read, folder)
        target = output or Path(f"{file_stem(name) or 'run'}.zip")
        _check_target(target, force)
        with working("export", "packing") as work:
            archived = write_archive(folder, target, work.percent)
        note_product(stored, "export", target)
    if as_json:
        print_json(
            {
                "run": name,
                "file": str(target),
                "bytes": archived.bytes,
                "files": archived.files,
                "redacted": redact,
                "same_diagnosis": same,
            }
        )
    else:
        what = f"a redacted copy of {read.header.run}" if redact else f"the run {name}"
        size = f"{archived.bytes / 1000:.0f} kB"
        print(f"Exported {what} to {target}: {archived.files} files, {size}.")


def _check_target(target: Path, force: bool) -> None:
    if target.is_dir():
        raise ToolError(f"{target} is a folder.", hint="Name a file with -o.")
    if target.exists() and not force:
        raise ToolError(f"{target} already exists.", hint="Overwrite it with --force.")
    if not target.absolute().parent.is_dir():
        raise ToolError(
            f"Cannot write {target.name}: there is no folder {target.absolute().parent}."
        )


def _parts(path: Path) -> Iterator[bytes]:
    """A file, some whole lines at a time."""
    with path.open("rb") as file:
        while some := file.read(_AT_ONCE):
            yield some + file.readline()


def _redacted(run: Run, folder: Path) -> tuple[str, bool | None]:
    """Write the redacted run into `folder`: its id, and whether the rules say the same of it; None
    where there are too many causes to compare what they say of each."""
    from compilescope.record.artifacts import ARTIFACTS, PackedArtifacts
    from compilescope.record.packs import Pack
    from compilescope.report.sharing.archive import write_run
    from compilescope.report.sharing.redaction.diagnosis import (
        MOST_COMPARED,
        changed,
        compared_diagnosis,
    )
    from compilescope.report.sharing.redaction.run import a_few, leaked_names, redact

    # A digest is as large as its run: none is kept while there is something else to do.
    before, extent = compared_diagnosis(run)
    try:
        artifacts = PackedArtifacts(folder / ARTIFACTS)
        with working("export", "redacting") as work:
            redaction = redact(run, artifacts, work.percent)
            write_run(folder, redaction.run)
        pack = artifacts.close()
    except OSError as error:
        raise ToolError(f"Cannot write the redacted run in {folder}: {error.strerror}.") from None
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != pack)
    written = itertools.chain.from_iterable(map(_parts, paths))
    texts = itertools.chain(written, Pack(pack).texts() if pack is not None else ())
    leaked = leaked_names(redaction, (each.decode("utf-8", "surrogatepass") for each in texts))
    if leaked:
        shown = a_few(leaked)
        raise ToolError(
            (
                f"Redaction would have left names of yours in the file, such as {shown}, so it was "
                "not written."
            ),
            hint="This is a bug in compilescope; please report it.",
        )
    if redaction.left_out:
        noun = "source file is" if redaction.left_out == 1 else "source files are"
        print(
            f"Note: {redaction.left_out} {noun} left out: too large to redact, or too many.",
            file=sys.stderr,
        )
    if redaction.whole:
        texts_are = "1 text is" if redaction.whole == 1 else f"{redaction.whole:,} texts are"
        print(
            f"Note: {texts_are} replaced entirely: the run has too many different words.",
            file=sys.stderr,
        )
    different = changed(before, compared_diagnosis(redaction.run)[0])
    if different:
        listed = ", ".join(different)
        print(f"Note: the redacted run's diagnosis differs in: {listed}.", file=sys.stderr)
    elif extent == "part":
        print(
            "Note: the redacted run's diagnosis was compared in part: all counts, lines and "
            f"outcomes; the reasons only of the first {MOST_COMPARED:,} causes of each kind.",
            file=sys.stderr,
        )
    elif extent == "none":
        print(
            "Note: the redacted run's diagnosis was not compared: it has too many causes.",
            file=sys.stderr,
        )
    same = not different
    return redaction.run.header.run, same if different or extent == "whole" else None
