# ideal: any
# trap: where there is one repeat alone, its row is added to all atoms
import torch


@torch.compile(backend="aot_eager")
def mixed(atoms, states, counts):
    spread = torch.repeat_interleave(states, counts, dim=0)
    return atoms + spread


for counts in ([2, 3, 1], [0, 1, 0], [3, 2, 1]):
    print(mixed(torch.ones(6, 4), torch.ones(3, 4), torch.tensor(counts)).sum().item())
