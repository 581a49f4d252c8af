"""Iterators among the arguments of a call: what they will give, without using them up.

Only those whose way on is plain: over lists and the like, and expressions that read nothing else.
A generator that calls or looks up something may do anything on its way; it is left alone.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from types import FunctionType, GeneratorType
from typing import Any

from compilescope.instrument.torchapi.regions import CompiledRegion

Place = int | str
_MAKERS = (iter, zip, enumerate, reversed)
_SEQUENCES = (list, tuple, range, dict, str)
_MOST = 10_000
"""Items. Chosen: an iterator with more may have no end, and all that it gives is held in memory."""


class _Unclear(Exception):
    """Nobody can tell what it will give."""


def settled(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], set[Place]]:
    """The arguments with lists for iterators, and where these are."""
    found = {i: _items(arg) for i, arg in enumerate(args)} | {
        k: _items(v) for k, v in kwargs.items()
    }
    lists: dict[Any, list[Any]] = {
        place: items for place, items in found.items() if items is not None
    }
    listed = tuple(lists.get(i, arg) for i, arg in enumerate(args))
    return listed, {k: lists.get(k, v) for k, v in kwargs.items()}, set(lists)


def renewing(region: CompiledRegion, places: set[Place]) -> CompiledRegion:
    """Takes lists at these places, and is called with iterators over them."""
    if not places:
        return region
    eager, compiled = (
        functools.partial(_call_anew, call, places) for call in (region.eager, region.compiled)
    )
    return CompiledRegion(region.name, eager, compiled, region.number)


def _call_anew(call: Callable[..., Any], places: set[Place], *args: Any, **kwargs: Any) -> Any:
    given = [iter(arg) if i in places else arg for i, arg in enumerate(args)]
    return call(*given, **{k: iter(v) if k in places else v for k, v in kwargs.items()})


def _items(value: Any) -> list[Any] | None:
    if not isinstance(value, Iterator):
        return None
    try:
        items = list(itertools.islice(_copied(value), _MOST + 1))
    except Exception:  # The border: an operator of a program's own class.
        return None
    return items if len(items) <= _MOST else None


def _copied(value: Any) -> Any:
    """Another iterator that gives the same."""
    if isinstance(value, GeneratorType):
        return _generated(value)
    make, given, *state = value.__reduce__()
    if make not in _MAKERS or type(value).__module__ != "builtins":
        raise _Unclear
    copies = [_copied(each) if isinstance(each, Iterator) else each for each in given]
    if make in (iter, reversed) and type(copies[0]) not in _SEQUENCES:
        raise _Unclear
    made = make(*copies)
    if state and state[0] is not None:
        made.__setstate__(state[0])
    return made


def _generated(value: GeneratorType[Any, Any, Any]) -> Any:
    code = value.gi_code
    names = [each.opname for each in dis.get_instructions(code)]
    plain = not (code.co_names or code.co_freevars or code.co_cellvars)
    if not plain or code.co_argcount != 1 or any(map(_calls, names)):
        raise _Unclear
    if inspect.getgeneratorstate(value) != inspect.GEN_CREATED or value.gi_frame is None:
        raise _Unclear
    return FunctionType(code, {})(_copied(value.gi_frame.f_locals[".0"]))


def _calls(opname: str) -> bool:
    """Not the interpreter's own helpers: since Python 3.12 each generator ends with one."""
    return opname.startswith("CALL") and not opname.startswith("CALL_INTRINSIC")
