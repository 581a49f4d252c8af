"""Eager code run again in other arithmetic, to see what rounding alone can do to a result; and what
decides whether another run must give the same numbers.

In float64, whatever precision it asks for, it is the measure of both sides' error: numbers of lower
precision are widened as operators meet them, casts to a lower precision do nothing, integers stay.
With jitter every rounding goes another way: a sum of many, a branch that hangs on the last bit, an
argmax between near ties may land elsewhere, and how far is seen without knowing why. Random
operators give what they gave in the reference, from its tape.

That is: random numbers, casts of numbers that do not fit, numbers that Python reads off tensors,
and how many numbers are added up at most.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from compilescope.base.package import PACKAGE
from compilescope.instrument.torchapi.calls.operators import (
    is_higher_order,
    is_view,
    written_arguments,
)
from compilescope.instrument.torchapi.stacks import origin
from compilescope.record.fingerprint import relative_file
from compilescope.record.stack import Frame, plain_function_name


def with_leaves(make: Callable[[Any], Any], value: Any) -> Any:
    """Its lists, tuples and dicts, with what is made of all else."""
    return tree_map(make, value)


_WHOLE = frozenset(
    {
        *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
        *("bernoulli", "normal", "multinomial", "poisson", "binomial"),
        *("_standard_gamma", "_sample_dirichlet"),
    }
)
"""Operators whose result is nothing but what was drawn."""


class NotReplayable(Exception):
    """What was drawn cannot be given to a wider run."""


def is_drawing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Does it draw random numbers, called like this?"""
    if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
        return False
    given = _named(func, args, kwargs)
    if any(given.get(name) is False for name in ("train", "training")):
        return False
    chances = ["dropout_p", "dropout"] + (["p"] if "dropout" in str(func) else [])
    return not any(name in given and given[name] == 0 for name in chances)


def _named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    schema = getattr(func, "_schema", None)
    arguments = schema.arguments if schema is not None else ()
    usual = {a.name: a.default_value for a in arguments if a.has_default_value()}
    return {**usual, **dict(zip((a.name for a in arguments), args, strict=False)), **kwargs}


class Tape:
    """What the random operators of one run gave."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, Any]] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    def record(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        drawn = _drawn(func, args, result)
        kept = drawn.detach().clone() if isinstance(drawn, torch.Tensor) else None
        self._entries.append((str(func), kept))

    def rewind(self) -> None:
        self._next = 0

    def replay(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result that `func` has with the numbers that were drawn at this place before."""
        entry = self._entries[self._next] if self._next < len(self._entries) else None
        self._next += 1
        if entry is None or entry[0] != str(func) or entry[1] is None:
            raise NotReplayable(f"the random numbers that {func} draws cannot be replayed")
        drawn = entry[1]
        if _name(func) == "native_dropout":
            given = _named(func, args, kwargs)
            return _dropped(given["input"], drawn, float(given["p"])), drawn
        for position in written_arguments(func):
            if args[position].shape != drawn.shape:
                raise NotReplayable(f"{func} draws a different number of values")
            return args[position].copy_(drawn)
        return drawn.to(torch.float64) if drawn.is_floating_point() else drawn


def _dropped(value: torch.Tensor, mask: torch.Tensor, chance: float) -> torch.Tensor:
    return torch.zeros_like(value) if chance >= 1 else value * mask.to(value.dtype) / (1 - chance)


def _drawn(func: Any, args: tuple[Any, ...], result: Any) -> Any:
    """The tensor that holds what was drawn; None where it is mixed with what was computed."""
    if _name(func) == "native_dropout":
        return result[1]
    written = written_arguments(func)
    if len(written) == 1 and written[0] < len(args) and _name(func).endswith("_"):
        return args[written[0]]
    return result if _name(func) in _WHOLE and isinstance(result, torch.Tensor) else None


def _name(func: Any) -> str:
    parts = str(func).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


_WIDE = {
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_BITS = frozenset({"view.dtype", "_unsafe_view.dtype", "view_copy.dtype", "frexp.Tensor"})
"""Operators that look at the bits of a number: they mean nothing in another precision."""


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """What stands for it: float64, complex128, or itself."""
    if dtype.is_floating_point:
        return torch.float64
    return _WIDE.get(dtype, dtype)


class Widening(TorchDispatchMode):  # type: ignore[misc]
    """While it is on, all arithmetic on numbers that are not whole is float64's.

    What an operator such as `cond` runs within starts from float64, and is left to itself.
    """

    supports_higher_order_operators = True

    def __init__(self, tape: Tape | None = None) -> None:
        super().__init__()
        self._tape = tape
        if tape is not None:
            tape.rewind()
        self.scalars: list[Any] = []
        """As in a survey."""
        self.narrow: dict[str, str] = {}
        """Operators that refused float64 and ran in float32, with their words."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func)
        if is_higher_order(func):
            wide_args, wide_kwargs = tree_map(_widened, (args, kwargs))
            return func(*wide_args, **wide_kwargs)
        if name.split(".", 1)[-1] in _BITS and _has_floats(args):
            raise NotReplayable(f"{name} reads the bits of a number")
        if is_drawing(func, args, kwargs):
            if self._tape is not None:
                return self._tape.replay(func, args, kwargs)
            if _written(func, args, kwargs):
                return func(*args, **kwargs)
            # In float64 a generator gives other numbers.
            narrow_args, narrow_kwargs = tree_map(_narrowed, (args, kwargs))
            return func(*narrow_args, **narrow_kwargs)
        if is_view(name):
            # A copy would be no view. What lies below it is widened where it is used.
            return func(*args, **kwargs)
        result = self._computed(func, name, args, kwargs)
        if name.startswith("aten._local_scalar_dense"):
            self.scalars.append(result)
        return result

    def _computed(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        written = _written(func, args, kwargs)
        wide_args, wide_kwargs = tree_map(_widened, (args, kwargs))
        if "softmax" in name:
            # The flag that says "from half to float" is refused with anything but half.
            wide_args = tuple(False if item is True else item for item in wide_args)
        try:
            result = func(*wide_args, **wide_kwargs)
        except (NotImplementedError, RuntimeError) as error:
            if written:
                raise
            result = self._narrowly(func, args, kwargs, error)
        for position, key, given in written:
            made = wide_args[position] if key is None else wide_kwargs[key]
            if isinstance(given, (list, tuple)):
                for each, wide in zip(given, made, strict=True):
                    if wide is not each:
                        each.copy_(wide)
            elif made is not given:
                # A tensor that nobody widened is written into: it takes what it can hold.
                given.copy_(made)
                result = given if result is made else result
        return tree_map(_widened, result) if not written else result

    def _narrowly(self, func: Any, args: Any, kwargs: Any, error: Exception) -> Any:
        narrow_args, narrow_kwargs = tree_map(_narrowed, (args, kwargs))
        try:
            result = func(*narrow_args, **narrow_kwargs)
        except (NotImplementedError, RuntimeError):
            raise error from None
        self.narrow[str(func)] = " ".join(str(error).split())[:200]
        return result


def _written(func: Any, args: Any, kwargs: Any) -> list[tuple[int, str | None, Any]]:
    """The tensors, and lists of them, that an operator writes into, with their places."""
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    found: list[tuple[int, str | None, Any]] = []
    for position in written_arguments(func):
        name = schema.arguments[position].name
        if position < len(args) and isinstance(args[position], (torch.Tensor, list, tuple)):
            found.append((position, None, args[position]))
        elif isinstance(kwargs.get(name), (torch.Tensor, list, tuple)):
            found.append((position, name, kwargs[name]))
    return found


def _widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        wide = wide_dtype(value.dtype)
        return value if wide is value.dtype or value.is_quantized else value.to(wide)
    return wide_dtype(value) if isinstance(value, torch.dtype) else value


def _narrowed(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype is torch.float64:
        return value.to(torch.float32)
    return torch.float32 if value is torch.float64 else value


def _has_floats(args: Any) -> bool:
    return any(isinstance(arg, torch.Tensor) and arg.is_floating_point() for arg in args)


_EXACT = """
    _to_copy clone copy_ cat stack index select slice gather embedding where masked_fill expand
    permute view reshape constant_pad_nd pad neg abs relu maximum minimum clamp max min amax amin
    sort topk zeros ones full arange zeros_like ones_like full_like empty new_zeros new_ones
    scatter index_select repeat flip roll tril triu detach alias lift_fresh_copy floor ceil round
    trunc sign unbind split max_pool2d_with_indices threshold_backward
"""
_MOVES = frozenset(_EXACT.split())
"""Operators that round nothing."""
_WHOLE_BELOW = float(1 << 20)
"""Larger whole numbers are as likely rounded ones: from 2**24 on float32 holds no others."""


class Jitter(TorchDispatchMode):  # type: ignore[misc]
    """Each result that was rounded goes one unit up or down, or stays."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = str(func)
        base = name.split(".")[1] if "." in name else name
        schema = getattr(func, "_schema", None)
        if schema is None or schema.is_mutable or is_view(name) or base in _MOVES:
            return result
        if is_drawing(func, args, kwargs):
            return result
        return tree_map(self._moved, result)

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        if value.layout is not torch.strided or value.is_quantized or not value.numel():
            return value
        steps = torch.randint(-1, 2, value.shape, generator=self._generator, device="cpu").to(
            value.device
        )
        unit = torch.finfo(value.dtype).eps
        # Whole numbers are most often exact: flags, counts, sizes.
        whole = (value == value.round()) & (value.abs() < _WHOLE_BELOW)
        moved = value + value * steps.to(value.dtype) * unit
        return torch.where(whole | ~torch.isfinite(value), value, moved)


_OUR_ROOT = PACKAGE + os.sep
_MODULES = os.path.join("torch", "nn", "modules", "")
_MATMULS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "mv": 0, "dot": 0, "_int_mm": 0}
"""Operators that add up along the last dimension of this argument."""
_REDUCING = frozenset(
    {"sum", "mean", "prod", "var", "std", "norm", "linalg_vector_norm", "logsumexp", "cumsum"}
)


class SurveyedOperator(NamedTuple):
    """An operator that did something worth a word, and the user's line that led to it."""

    op: str
    frame: Frame | None
    detail: str = ""

    def words(self) -> str:
        frame = self.frame
        place = f" ({from_here(frame.file)}:{frame.line})" if frame is not None else ""
        return f"{self.op}{f' {self.detail}' if self.detail else ''}{place}"


class Survey(TorchDispatchMode):  # type: ignore[misc]
    """Watches one eager run. What an operator such as `cond` runs within is not seen."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.random: list[SurveyedOperator] = []
        self.overflowing: list[SurveyedOperator] = []
        """Casts to integers of numbers that the integer type cannot hold: undefined in C++."""
        self.scalars: list[Any] = []
        """What Python read off tensors, in order: what branches hang on."""
        self.reduction = 1
        """The most numbers that one operator added up for one result."""
        self.tape = Tape()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if is_higher_order(func):
            return result
        if is_drawing(func, args, kwargs):
            self._note(self.random, func)
            self.tape.record(func, args, result)
        name = str(func).split(".")[1] if "." in str(func) else str(func)
        if name in ("_to_copy", "convert_element_type", "copy_"):
            self._look_at_cast(name, func, args, result)
        elif name == "_local_scalar_dense":
            self.scalars.append(result)
        else:
            self.reduction = max(self.reduction, _reduced(name, args, result))
        return result

    def _look_at_cast(self, name: str, func: Any, args: Any, result: Any) -> None:
        source = args[1] if name == "copy_" else args[0]
        if not (isinstance(source, torch.Tensor) and isinstance(result, torch.Tensor)):
            return
        whole = not (result.is_floating_point() or result.is_complex())
        if result.dtype is torch.bool or not whole or not source.is_floating_point():
            return
        info = torch.iinfo(result.dtype)
        # What lies between the last whole number and the next is cut off, and fits.
        room = 1.0 if info.bits <= 16 else 0.0
        fits = (source >= float(info.min)) | (source > float(info.min) - room)
        if not bool((fits & (source < float(info.max) + 1.0)).all()):
            self._note(self.overflowing, func, f"to {str(result.dtype).removeprefix('torch.')}")

    def _note(self, where: list[SurveyedOperator], func: Any, detail: str = "") -> None:
        seen = SurveyedOperator(str(func), _user_frame(), detail)
        if seen not in where:
            where.append(seen)


class Saturation(TorchDispatchMode):  # type: ignore[misc]
    """Numbers that an integer type cannot hold become its nearest: another answer as good."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func).split(".")[1] if "." in str(func) else str(func)
        if name == "_to_copy" and args[0].is_floating_point():
            dtype = kwargs.get("dtype")
            if dtype is not None and dtype is not torch.bool and not dtype.is_floating_point:
                info = torch.iinfo(dtype) if not dtype.is_complex else None
                if info is not None:
                    wide = args[0].to(torch.float64).nan_to_num(0.0)
                    whole = wide.clamp(info.min, info.max).to(torch.int64)
                    # 2**63 - 1 is no float64: what is clamped to it would wrap.
                    whole = torch.where(wide >= info.max, torch.full_like(whole, info.max), whole)
                    return func(whole, **kwargs)
        return func(*args, **kwargs)


def from_here(file: str) -> str:
    """The file as the user would type it."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    if origin(file) != "user":
        return relative_file(file, here)
    return file[len(here) :] if file.startswith(here) else file


def _reduced(name: str, args: Any, result: Any) -> int:
    try:
        if name in _MATMULS:
            return int(args[_MATMULS[name]].shape[-1])
        if name == "convolution":
            return math.prod(args[1].shape[1:])
        if name in _REDUCING and isinstance(result, torch.Tensor) and result.numel():
            return int(args[0].numel() // result.numel())
        if "attention" in name:
            return max(int(leaf.shape[-2]) for leaf in tree_leaves(args) if _has_rows(leaf))
    except (AttributeError, IndexError, TypeError, ValueError, RuntimeError):
        return 1
    return 1


def _has_rows(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() >= 2


def _user_frame() -> Frame | None:
    """The innermost running line of the program: its own, else a module's of torch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    inner: FrameType | None = None
    # We started the program: what lies beyond our frames is not part of it.
    while frame is not None and not _is_ours(frame):
        file = frame.f_code.co_filename
        if origin(file) in ("user", "library"):
            return _told(frame)
        if inner is None and _MODULES in file:
            inner = frame
        frame = frame.f_back
    return _told(inner) if inner is not None else None


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OUR_ROOT)


def _told(frame: FrameType) -> Frame:
    file = frame.f_code.co_filename
    name = plain_function_name(frame.f_code.co_name)
    return Frame(file, frame.f_lineno, name, origin=origin(file))
