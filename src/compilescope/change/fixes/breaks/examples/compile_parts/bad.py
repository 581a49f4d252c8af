import torch

model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
losses = []


# One step of training, with what is kept of it.
@torch.compile(backend="eager")
def step(x, y):
    """Gives the share of hits."""
    out = model(x)
    # Summed over all.
    loss = ((out - y) ** 2).sum()
    losses.append(loss.item())
    near = (out - y).abs() < 0.5
    return near.float().mean()


for _ in range(2):
    step(torch.ones(2, 3), torch.zeros(2, 3))
