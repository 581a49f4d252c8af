"""Shows a tensor subclass whose __torch_function__ breaks."""

import torch

#: graphs 3


class Counted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        torch._dynamo.graph_break()  #: break "torch._dynamo.graph_break()" Call to `torch._dynamo.graph_break()` #: category explicit
        return super().__torch_function__(func, types, args, kwargs)


@torch.compile(backend="eager")
def f(x, y):
    z = y * 2
    torch.sin(x)
    return z + 1


f(torch.ones(3).as_subclass(Counted), torch.ones(3))
