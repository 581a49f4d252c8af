"""The public words: what may stay in a redacted run because it says nothing of the user.

The lists under `words/` are gathered from torch, NumPy and Python by
`tests/sharing/words_of_torch.py`. They need not be complete: a word that is missing is replaced.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
from pathlib import Path

_FOLDER = Path(__file__).with_name("words")

LAYER_WORDS = frozenset(
    prefix + stem
    for stem in ("idx", "index", "id", "num", "number", "no")
    for prefix in (
        "",
        *(
            group + joint
            for group, joint in itertools.product(
                ("layer", "block", "stage", "expert", "depth", "head", "group"), ("", "_")
            )
        ),
    )
) | {"layer", "block", "stage"}
"""By these a rule knows a layer's own number."""

_SYMBOL = re.compile(
    r"(?:s|u|zf|zuf)\d+"  # a symbolic size
    r"|___(?:stack|context_manager|module|local_mod|implicit|check_metadata)_?[\d_]*"
    r"|___check_opaque_guard_fn_\d+|__(?:compiled_fn|resume_at|graph_out|ret|stack)_?[\d_]+"
    r"|__compiled_fn_\d+_[0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12}"
    r"|__builtins_dict__(?:_\d+)?|(?i:gb)\d{4}"
)

INSIDE = ("numpy", "tqdm", "nonzero", "argwhere", "graph_break", "disable")
AT_THE_END = (
    *("arange", "range", "zeros", "ones", "empty", "reshape", "view", "Tensor", "Parameter"),
)
"""Parts of names that rules look for: a name that has one keeps it."""


@functools.cache
def _words(name: str) -> frozenset[str]:
    return frozenset((_FOLDER / f"{name}.txt").read_text(encoding="utf-8").split())


def code() -> frozenset[str]:
    """Kept wherever they stand: Python's own names, torch's functions and tensor methods."""
    return _words("code")


def dotted() -> frozenset[str]:
    """Kept after a public root and a dot: torch's modules, classes and settings, NumPy's names."""
    return _words("dotted")


def roots() -> frozenset[str]:
    """Modules, and the usual short names of them, whose names `dotted` lists."""
    return _words("roots")


def prose() -> frozenset[str]:
    """The words of Dynamo's own sentences."""
    return _words("prose")


def errors() -> frozenset[str]:
    """The words of PyTorch's messages about errors."""
    return _words("errors")


def generated() -> frozenset[str]:
    """The words of graphs, and of the code that Inductor writes."""
    return _words("generated")


@functools.cache
def op_parts() -> frozenset[str]:
    """What the names of kernels are made of: the names of operators, cut at their underscores."""
    return frozenset(part for word in code() for part in word.lower().split("_"))


def is_known_package(name: str) -> bool:
    """A package that anyone can install."""
    return name in _words("packages")


def is_public_package(name: str) -> bool:
    """A package that anyone can install, or a module of Python's own."""
    return is_known_package(name) or name in sys.stdlib_module_names


def is_symbol(word: str) -> bool:
    """A name that torch itself makes up."""
    return _SYMBOL.fullmatch(word) is not None


def is_public(word: str) -> bool:
    return word in code() or word in LAYER_WORDS or is_symbol(word)


def mark_of(word: str) -> str:
    """The part of a name that rules look for; empty where there is none."""
    ending = next((mark for mark in AT_THE_END if word.endswith(mark)), "")
    return ending or next((mark for mark in INSIDE if mark in word), "")
