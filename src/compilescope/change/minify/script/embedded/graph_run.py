# ruff: noqa: B905
# mypy: ignore-errors
"""Runs a repro's graph once: results and gradients from a fixed seed, the same way each time."""

import torch


def results_of(function, numbers, backward):
    """Its results in one list, gradients last; and whether it drew random numbers."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    results = function(*numbers)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    drew = not torch.equal(before, torch.get_rng_state())
    if backward:
        sources = [
            each for each in numbers if isinstance(each, torch.Tensor) and each.requires_grad
        ]
        losses = [each for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
        # Weights that differ: a plain sum of a softmax has no gradient.
        weights = [torch.linspace(0.5, 1.5, max(each.numel(), 1)) for each in losses]
        summed = [
            (each.flatten() * weight.to(each)[: each.numel()]).sum()
            for each, weight in zip(losses, weights)
        ]
        if summed and sources:
            results += torch.autograd.grad(sum(summed), sources, allow_unused=True)
    kept = [each.detach() if isinstance(each, torch.Tensor) else each for each in results]
    return kept, drew
