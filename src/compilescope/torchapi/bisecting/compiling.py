"""Gives a part of a graph to a backend as Dynamo would: real tensors, symbols for free sizes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import Node

from compilescope.torchapi.bisecting.ambient import kept_random_state
from compilescope.torchapi.bisecting.copies import copy_values, is_tensor
from compilescope.torchapi.bisecting.evaluating import Occasion
from compilescope.torchapi.bisecting.parts import Part, is_dynamic, value_of
from compilescope.torchapi.bisecting.walking import as_in_program


def compile_part(backend: Callable[..., Any], part: Part, occasion: Occasion) -> Callable[..., Any]:
    """What the backend made. What it raises goes to the caller."""
    values = copy_values(occasion.values.values)
    made: Callable[..., Any]
    with kept_random_state(), occasion.ambient.entered(), uncached():
        occasion.values.random.restore()
        examples = as_in_program(values)
        if not is_dynamic(part):
            made = backend(part.module(), examples)
        else:
            with _symbolic([given.node for given in part.inputs], examples) as symbolic:
                made = backend(part.module(), symbolic)
    return made


@contextlib.contextmanager
def _symbolic(nodes: Sequence[Node], examples: list[Any]) -> Iterator[list[Any]]:
    """The tensors stand for the compiler's own fake ones, whose sizes are symbols.

    Without what that needs of torch the sizes are numbers, and the part is compiled for them.
    """
    from torch._guards import TracingContext, tracing

    noted = [value_of(node) for node in nodes]
    mode = next((v.fake_mode for v in noted if hasattr(v, "fake_mode")), None)
    converter = getattr(mode, "fake_tensor_converter", None)
    if mode is None or converter is None or not hasattr(converter, "set_tensor_memo"):
        yield examples
        return
    given: list[Any] = []
    for value, example in zip(noted, examples, strict=True):
        if not is_tensor(example):
            known = isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
            given.append(value if known else example)
            continue
        if hasattr(value, "fake_mode"):
            fake = value
            # Of a number that came as a tensor the fake one knows the value: it is taken as it is.
            if value.grad_fn is not None or value.requires_grad != example.requires_grad:
                with mode:
                    fake = value.detach().requires_grad_(example.requires_grad)
            converter.set_tensor_memo(example, fake)
        given.append(example)
    with tracing(TracingContext(mode)):
        yield given


@contextlib.contextmanager
def uncached() -> Iterator[None]:
    """A part compiled before would be found in a cache, by a backend that has changed since."""
    with contextlib.ExitStack() as stack:
        for module, name in (
            ("torch._functorch.config", "enable_autograd_cache"),
            ("torch._inductor.config", "fx_graph_cache"),
            ("torch._inductor.config", "fx_graph_remote_cache"),
        ):
            # Importing Inductor takes seconds; who has not imported it does not use its cache.
            config = sys.modules.get(module)
            if config is not None and hasattr(config, name):
                stack.enter_context(config.patch(**{name: False}))
        yield
