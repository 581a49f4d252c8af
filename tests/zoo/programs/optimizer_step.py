"""Shows a compiled optimizer step, whose only break lies in torch itself."""

import torch

#: graphs 1

torch.manual_seed(0)
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile(backend="eager")
def step():
    optimizer.step()  #: break "optimizer.step()" Call to `torch._dynamo.graph_break()` #: category explicit


model(torch.ones(2, 3)).sum().backward()
step()
