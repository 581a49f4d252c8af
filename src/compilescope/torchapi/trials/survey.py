"""Watches an eager run for what decides whether another run must give the same numbers.

That is: random numbers, casts of numbers that do not fit, numbers that Python reads off tensors,
and how many numbers are added up at most.
"""

from __future__ import annotations

import math
import os
import sys
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from compilescope.model.fingerprint import relative_file
from compilescope.model.stack import Frame, plain_function_name
from compilescope.torchapi.calls.operators import is_higher_order
from compilescope.torchapi.stacks import origin
from compilescope.torchapi.trials.reruns import Tape, is_drawing

_OUR_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
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
