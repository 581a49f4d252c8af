# ideal: value-from-outside
"""A context variable says how strong the guidance is."""

import contextvars

import torch

guidance = contextvars.ContextVar("guidance", default=1.0)


@torch.compile(backend="eager")
def guided(cond, uncond):
    delta = cond - uncond
    return uncond + guidance.get() * delta


a, b = torch.ones(3), torch.zeros(3)
print(guided(a, b).tolist())
token = guidance.set(7.5)
print(guided(a, b).tolist())
guidance.reset(token)
print(guided(a, b).tolist())
