import torch

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


# One step of training.
@torch.compile(backend="eager")
def step(x, y):
    """Gives the loss."""
    optimizer.zero_grad()
    # The part that counts.
    out = model(x)
    loss = ((out - y) ** 2).mean()
    loss.backward()  # gradients
    return loss


step(torch.ones(2, 3), torch.zeros(2, 3))
