"""Shows a tensor subclass whose __torch_function__ is traced through."""

import torch

#: graphs 1


class Plain(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)


@torch.compile(backend="eager")
def f(x):
    return torch.sin(x) + 1


f(torch.ones(3).as_subclass(Plain))
