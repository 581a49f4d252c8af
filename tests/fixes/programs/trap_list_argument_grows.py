# ideal: none
# trap: the list is the caller's, and how long it is decides what is computed
import torch


@torch.compile(backend="eager")
def mean_of(outputs):
    return torch.stack(outputs).mean(0) * len(outputs)


outputs = []
for step in range(4):
    outputs.append(torch.full((3,), float(step)))
    print(mean_of(outputs).tolist())
