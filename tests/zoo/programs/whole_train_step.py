"""Shows a train step compiled with backward and the optimizer inside."""

import torch

#: graphs 2

torch.manual_seed(0)
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile(backend="eager")
def step(x):
    loss = model(x).square().mean()
    loss.backward()  #: break "loss.backward()" Unsupported Tensor.backward() call #: category autograd
    optimizer.step()  #: break "optimizer.step()" Call to `torch._dynamo.graph_break()` #: category explicit
    optimizer.zero_grad()  #: break "optimizer.zero_grad()" Attempted to inline function marked as skipped #: category autograd
    return loss


step(torch.ones(2, 3))
