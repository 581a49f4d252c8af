import torch

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile(backend="eager")
def _loss(x, y):
    # The part that counts.
    out = model(x)
    loss = ((out - y) ** 2).mean()
    return loss


# One step of training.
def step(x, y):
    """Gives the loss."""
    optimizer.zero_grad()
    loss = _loss(x, y)
    loss.backward()  # gradients
    return loss


step(torch.ones(2, 3), torch.zeros(2, 3))
