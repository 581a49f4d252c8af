"""What a fix is: one file, which says what it is for, when it fits, and what it changes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from compilescope.base.bundles import Bundled
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.examples import (
    Example,
    RefusalExample,
    example_folder,
    read_examples,
    read_refusals,
)

_PACKAGES = [Path(__file__).parent / name for name in ("breaks", "recompiles")]

Kind = Literal["source", "caller", "config", "scaffold"]
"""`source` changes the lines concerned; `caller` changes how a library is used; `config` sets a
flag of PyTorch's; `scaffold` is a beginning that a person has to finish."""


class Fix(msgspec.Struct, frozen=True, dict=True):
    """A way to win one kind of loss back; of those that fit, the first by `order` comes first."""

    id: str
    """Kebab-case; names the change: `where-for-if`."""
    title: str
    """What it does, in a few words, for tables: `torch.where instead of if`."""
    rules: frozenset[str]
    """Keys of a subject (see `Subject.keys`): rule ids, graph-break ids, categories."""
    order: int
    """What a person would sooner write comes first. Below 55: a few lines at the place itself,
    the same by construction. Then a line or two that state a price; below 100 what takes a new
    function or operator; below 200 what reaches further than the place: an argument of
    `torch.compile`, a flag, a caller. From 200 on a last resort, a scaffold. Of two that are
    alike in this, the exact one comes first. A test measures it on the examples."""
    kind: Kind
    why: str
    """Why the result is the same, or what changes; for the documentation."""
    propose: Callable[[Subject], Patch]
    observable: bool = False
    """Each of its patches changes something that one can observe, which its `states` says."""
    """Raises `Refused` with the reason where it does not fit."""
    by_name: bool = False
    """Only tried where it is asked for by its id: what it loses is for its user to decide."""
    only_run_tells: bool = False
    """It switches off something that the program may need, or only lessens what is lost: without a
    run it is no advice."""

    placement: str = ""
    """What is compiled with it, in a word or two for a table: it changes nothing else. Of such
    fixes of one cause, the one that is best for the program is handed out."""

    @functools.cached_property
    def examples(self) -> tuple[Example, ...]:
        return read_examples(self._folder)

    @functools.cached_property
    def refusals(self) -> tuple[RefusalExample, ...]:
        return read_refusals(self._folder)

    @property
    def _folder(self) -> Bundled:
        folders = [example_folder(package, self.id) for package in _PACKAGES]
        return next((folder for folder in folders if folder.is_dir()), folders[0])
