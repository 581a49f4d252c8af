# mypy: ignore-errors
"""Writes the arguments that a repro of a user's program was called with as code.

Copied by its source into a draft of the repro, at the end of which it runs.
"""


def source_of(value):
    """An expression for a value like this one; raises `TypeError` where there is none."""
    import math

    import torch

    if isinstance(value, torch.Tensor):
        return _tensor_source(value)
    if value is None or (
        isinstance(value, (bool, int, str, bytes)) and type(value).__module__ == "builtins"
    ):
        return repr(value)
    if type(value) is float and math.isfinite(value):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.device)):
        return repr(value) if isinstance(value, torch.dtype) else f"torch.{value!r}"
    if type(value) in (tuple, torch.Size):
        inner = ", ".join(map(source_of, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if type(value) is list:
        return f"[{', '.join(map(source_of, value))}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{source_of(k)}: {source_of(v)}' for k, v in value.items())}}}"
    raise TypeError(f"{type(value).__name__} has no short source")


def _tensor_source(value):
    import torch

    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
        raise TypeError("a tensor of another kind")
    shape, kind = (
        tuple(value.shape),
        "" if value.dtype == torch.float32 else f", dtype={value.dtype}",
    )
    grad = ".requires_grad_()" if value.requires_grad and value.is_leaf else ""
    if not value.numel():
        return f"torch.empty({shape}, dtype={value.dtype})"
    if value.dtype == torch.bool:
        made = {0: "zeros", value.numel(): "ones"}.get(int(value.sum()))
        return f"torch.{made}({shape}{kind})" if made else f"(torch.rand({shape}) > 0.5)"
    if value.is_floating_point() or value.is_complex():
        return f"torch.randn({shape}{kind}){grad}"
    low, high = int(value.min()), int(value.max())
    return f"torch.randint({low}, {high + 1}, {shape}{kind})"


def describe(calls, number):
    """The call as JSON on the last line of stdout."""
    import json
    import sys

    called, args, kwargs = calls[number]
    names = {id(each): name for name, each in getattr(calls[-1][0], "named_modules", list)()}
    try:
        made = [source_of(each) for each in args]
        made += [f"{name}={source_of(each)}" for name, each in kwargs.items()]
    except (TypeError, RuntimeError, ValueError) as error:
        made = str(error)
    told = {
        "name": names.get(id(called), ""),
        "kind": type(called).__name__ if names else getattr(called, "__qualname__", "function"),
        "inputs": made,
        "calls": len(calls),
    }
    sys.stdout.write(f"\n{json.dumps(told)}\n")
