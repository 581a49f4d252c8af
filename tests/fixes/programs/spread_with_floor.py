# ideal: where-for-if
# The number has a name, and a branch gives the name another number.
import torch


@torch.no_grad()
def standardized(x):
    spread = x.std().item()
    if spread < 1e-3:
        spread = 1.0
    return (x - x.mean()) / spread


run = torch.compile(standardized, backend="eager")
print(run(torch.tensor([1.0, 2.0, 4.0])), run(torch.ones(3)))
