import torch


def force(x):
    x = x.detach().requires_grad_()
    energy = (x**2).sum()
    (slope,) = torch.autograd.grad(energy, x)
    return -slope


compiled = torch._dynamo.config.patch(trace_autograd_ops=True)(
    torch.compile(force, backend="eager")
)
compiled(torch.ones(3))
