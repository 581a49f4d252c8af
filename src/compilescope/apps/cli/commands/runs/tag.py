"""`compilescope runs tag`: tags and a note on a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compilescope.apps.cli.options import RUN_NAME, dir_option, home_folder, json_option, print_json
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.record.labels import Labels


@click.command("tag", short_help="Add tags and a note to a run.")
@click.argument("run", type=RUN_NAME)
@click.argument("tags", nargs=-1, metavar="[TAG]...")
@click.option("--remove", multiple=True, metavar="TAG", help="Remove this tag. Repeatable.")
@click.option("--note", metavar="TEXT", help="Replace the note; an empty text removes it.")
@json_option
@dir_option
def COMMAND(
    run: str,
    tags: tuple[str, ...],
    remove: tuple[str, ...],
    note: str | None,
    as_json: bool,
    home: Path | None,
) -> None:
    """Add TAGs to RUN. Without options, print its tags and note.

    `compilescope runs list --tag TAG` and the dashboard find runs by their tags.
    """
    from compilescope.record.home import find_run
    from compilescope.record.labels import make_labels, split_tags, write_labels

    folder = find_run(home_folder(home), run)
    changes = bool(tags or remove or note is not None)
    labels = _known(folder, replacing=changes)
    if changes:
        added = [tag for word in tags for tag in split_tags(word)]
        gone = {tag for word in remove for tag in split_tags(word)}
        _check_removed(gone, labels)
        kept = [tag for tag in (*labels.tags, *added) if tag not in gone]
        labels = make_labels(kept, labels.note if note is None else note)
        write_labels(folder, labels)
    if as_json:
        print_json({"run": folder.name, "tags": list(labels.tags), "note": labels.note})
        return
    print(f"{folder.name}: {', '.join(labels.tags) or 'no tags'}")
    if labels.note:
        print(labels.note)


def _known(folder: Path, *, replacing: bool) -> Labels:
    """A damaged file is an error, unless new labels are about to take its place."""
    from compilescope.record.labels import Labels, read_labels

    try:
        return read_labels(folder)
    except ToolError:
        if replacing:
            return Labels()
        raise


def _check_removed(gone: set[str], labels: Labels) -> None:
    missing = sorted(gone.difference(labels.tags))
    if missing:
        raise ToolError(
            f"The run has no tag {missing[0]!r}.",
            hint=f"It has: {', '.join(labels.tags)}." if labels.tags else "It has no tags.",
        )
