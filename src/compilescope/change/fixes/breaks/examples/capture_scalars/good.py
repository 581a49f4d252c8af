import torch


def f(x, n):
    return x[: n.item()] * 2


g = torch._dynamo.config.patch(capture_scalar_outputs=True)(
    torch.compile(f, backend="eager")
)
g(torch.ones(3), torch.tensor(2))
