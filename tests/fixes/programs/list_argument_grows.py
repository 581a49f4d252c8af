# ideal: join-outside
# The list is the caller's; its length is a number that the graph computes with.
import torch


@torch.compile(backend="eager")
def mean_of(outputs):
    return torch.stack(outputs).mean(0) * len(outputs)


outputs = []
for step in range(4):
    outputs.append(torch.full((3,), float(step)))
    print(mean_of(outputs).tolist())
