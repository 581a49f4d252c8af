# ruff: noqa: T201, B905
# mypy: ignore-errors
"""Are compiled numbers wrong? Eager and compiled are both compared with the graph in float64."""

import sys

import torch
from torch.overrides import TorchFunctionMode

LOW = (torch.float16, torch.bfloat16, torch.float32)


class Doubles(TorchFunctionMode):
    """Whatever asks for a narrower floating-point type gets float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            function = torch.Tensor.double

        def wide(value):
            return torch.float64 if isinstance(value, torch.dtype) and value in LOW else value

        kwargs = {name: wide(value) for name, value in (kwargs or {}).items()}
        return function(*map(wide, args), **kwargs)


def in_double(function, run, numbers):
    """The results in float64; None where random numbers or the graph itself do not allow it."""

    def wide(value):
        if not isinstance(value, torch.Tensor) or value.dtype not in LOW:
            return value
        return value.detach().to(torch.float64).requires_grad_(value.requires_grad)

    for name, value in list(vars(function).items()):
        if isinstance(value, torch.Tensor):
            setattr(function, name, wide(value))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Doubles():
            results = run(function.double(), [wide(value) for value in numbers])
        # Random numbers of another width are other numbers.
        return None if results[-1] else results[0]
    except Exception:
        return None
    finally:
        torch.set_default_dtype(before)


def difference(wanted, found, exact):
    """What kind of difference two results have, and its figures; None where there is none."""
    if not isinstance(wanted, torch.Tensor) or not isinstance(found, torch.Tensor):
        same = type(wanted) is type(found) and (wanted == found or wanted != wanted)
        return None if same else ("structure", f"{wanted!r:.80} became {found!r:.80}")
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        was, now = (f"{tuple(each.shape)} {each.dtype}" for each in (wanted, found))
        return "structure", f"{was} became {now}"
    if not (wanted.dtype.is_floating_point or wanted.dtype.is_complex):
        other = int((wanted != found).sum())
        return ("whole", f"{other} of {wanted.numel()} differ") if other else None
    width = torch.complex128 if wanted.dtype.is_complex else torch.float64
    eps = torch.finfo(wanted.dtype).eps
    wanted, found = wanted.to(width), found.to(width)
    usable = exact is not None and exact.shape == wanted.shape
    exact = exact.to(width) if usable else wanted
    bounded = torch.isfinite(wanted)
    # Where eager is no number, nobody can say what would be right.
    if bool((bounded & ~torch.isfinite(found)).any()):
        return (
            "nan",
            f"{int((bounded & ~torch.isfinite(found)).sum())} numbers are no longer finite",
        )
    bounded &= torch.isfinite(exact) & torch.isfinite(found)
    if not bool(bounded.any()):
        return None
    rows = (-1, wanted.shape[-1]) if wanted.dim() > 1 else (1, -1)
    nothing = torch.zeros((), dtype=width)
    wanted, found, exact = (
        torch.where(bounded, each, nothing).reshape(rows).abs()
        for each in (wanted - exact, found - exact, exact)
    )
    eager, compiled, scale = (each.amax(1) for each in (wanted, found, exact))
    # Rounding may fall out otherwise, but not ten times as far from the truth.
    allowed = 10 * eager + (16 if usable else 256) * eps * scale + eager.mean()
    worst = int((compiled - allowed).argmax())
    if compiled[worst] <= allowed[worst]:
        return None
    figures = (float(each[worst]) for each in (compiled, eager, allowed))
    return "values", "off by {:.3g}; eager by {:.3g}, rounding allows {:.3g}".format(*figures)


def find_difference(expected, eager, compiled, exact):
    """Does a result still differ in the expected way?"""
    wanted, found, right = eager(), compiled(), exact()
    if len(wanted) != len(found):
        return None, f"{len(wanted)} results became {len(found)}."
    known = right if right is not None and len(right) == len(wanted) else [None] * len(wanted)
    seen = [difference(*each) for each in zip(wanted, found, known)]
    for number, each in enumerate(seen):
        if each is not None:
            print(f"result {number}: {each[0]}: {each[1]}", file=sys.stderr)
    if any(each is not None and each[0] == expected for each in seen):
        return True, "eager and compiled results differ."
    if any(seen):
        return None, f"a difference, but not of {expected}."
    return False, "eager and compiled results agree."
