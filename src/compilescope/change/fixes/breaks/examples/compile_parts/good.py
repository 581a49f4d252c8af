import torch

model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
losses = []


@torch.compile(backend="eager")
def _out_and_loss(x, y):
    out = model(x)
    # Summed over all.
    loss = ((out - y) ** 2).sum()
    return out, loss


@torch.compile(backend="eager")
def _step_result(y, out):
    near = (out - y).abs() < 0.5
    return near.float().mean()


# One step of training, with what is kept of it.
def step(x, y):
    """Gives the share of hits."""
    out, loss = _out_and_loss(x, y)
    losses.append(loss.item())
    return _step_result(y, out)


for _ in range(2):
    step(torch.ones(2, 3), torch.zeros(2, 3))
