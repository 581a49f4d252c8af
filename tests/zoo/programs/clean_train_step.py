"""Shows a compiled loss trained for three steps with aot_eager."""

import torch

#: graphs 1

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile(backend="aot_eager")
def loss_of(x, y):
    return torch.nn.functional.mse_loss(model(x), y)


for _ in range(3):
    optimizer.zero_grad()
    loss_of(torch.randn(8, 4), torch.randn(8, 1)).backward()
    optimizer.step()
