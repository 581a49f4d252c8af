"""What a caller could see of one call besides the numbers in its result.

Which tensors share memory, what was printed or logged, what was raised, and the state of the random
number generators.
"""

from __future__ import annotations

import contextlib
import dis
import hashlib
import io
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from compilescope.change.repair.trials.child.list_contents import lists_held
from compilescope.measure.diff.runs.model_state import State
from compilescope.measure.tensors.copies import storage_key
from compilescope.measure.tensors.structure import argument_leaves, flatten
from compilescope.record.stack import origin_of

_MOST_LINES = 200
"""Of one call; the rest is not compared. Chosen: every replay keeps its own."""
_MOST_WORDS = 400
"""Letters of a line, likewise."""


class CallNotes:
    """Calls `call` and notes what its caller could see."""

    def __init__(self, call: Callable[..., Any], state: State) -> None:
        self._call = call
        self._state = state
        self.aliases: dict[str, str] = {}
        """Output -> the argument, weight or other output whose memory it lies in."""
        self.replaced: dict[str, str] = {}
        """Attribute or item that another tensor was put into -> likewise, or `new memory`."""
        self.gradients: dict[str, bool] = {}
        """Output -> does it require a gradient."""
        self.random = ""
        self.printed: list[str] = []
        self.surroundings: dict[str, str] = {}
        """Globals and attributes of classes that are not as they were."""
        self.lists: dict[str, list[Any]] = {}
        """What lists held after the first call."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._call(*args, **kwargs)
        if not self.random:  # A step of training calls again: the first call is the one.
            self.random = random_state()
            self.lists = lists_held(self._state, args, kwargs)
            self._look(result, args, kwargs)
        return result

    def _look(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        owners: dict[Any, str] = {}
        same: dict[int, str] = {}
        known = [*argument_leaves(args, kwargs).items(), *self._state.reachable.tensors.items()]
        for name, leaf in known:
            if isinstance(leaf, torch.Tensor):
                same.setdefault(id(leaf), name)
                key = storage_key(leaf)
                if key is not None:
                    owners.setdefault(key, name)
        for path, leaf in flatten(result).items():
            if not isinstance(leaf, torch.Tensor):
                continue
            self.gradients[path] = leaf.requires_grad
            key = storage_key(leaf)
            if id(leaf) in same:
                self.aliases[path] = f"{same[id(leaf)]} itself"
            elif key in owners:
                self.aliases[path] = f"the memory of {owners[key]}"
            elif key is not None:
                owners[key] = path
            same.setdefault(id(leaf), path)
        for name, tensor in self._state.replaced().items():
            key = storage_key(tensor)
            found = f"the memory of {owners[key]}" if key in owners else "new memory"
            self.replaced[name] = f"{same[id(tensor)]} itself" if id(tensor) in same else found

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """What is printed, logged and warned of within the block is kept."""
        out, errors, logged = io.StringIO(), io.StringIO(), _Lines()
        root = logging.getLogger()
        root.addHandler(logged)
        try:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(errors),
                warnings.catch_warnings(record=True) as warned,
            ):
                warnings.simplefilter("always")
                yield
        finally:
            root.removeHandler(logged)
        told = [
            f"{w.category.__name__}: {w.message}"
            for w in warned
            if origin_of(w.filename) in ("user", "generated")
        ]
        # A progress bar draws itself over and over, with the time that is left.
        said = [line for line in errors.getvalue().split("\n") if line and "\r" not in line]
        lines = [*out.getvalue().splitlines(), *said, *logged.lines, *told]
        self.printed += [line[:_MOST_WORDS] for line in lines[:_MOST_LINES]]


class _Lines(logging.Handler):
    """Log lines of the program; torch's own are no part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] not in ("torch", "compilescope"):
            with contextlib.suppress(TypeError, ValueError):
                self.lines.append(f"{record.levelname}: {record.getMessage()}")


def describe_error(error: BaseException) -> dict[str, Any]:
    """Class and words, and whether the program raised it by itself."""
    kind = type(error)
    own = kind.__module__ in ("builtins", "__main__")
    return {
        "type": kind.__qualname__ if own else f"{kind.__module__}.{kind.__qualname__}",
        "message": str(error)[:2000],
        "raised": _is_raised(error),
    }


def _is_raised(error: BaseException) -> bool:
    """By a `raise` or `assert` of the program, and not by something that it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    if origin_of(code.co_filename) not in ("user", "library", "generated"):
        return False
    names = {i.offset: i.opname for i in dis.get_instructions(code)}
    return names.get(trace.tb_lasti, "").startswith(("RAISE", "RERAISE"))


def random_state() -> str:
    found = hashlib.blake2b(torch.get_rng_state().numpy().tobytes(), digest_size=8)
    found.update(repr(random.getstate()).encode())
    return found.hexdigest()
