# ideal: none
# trap: the generator draws random numbers in turn with the function
import torch


def noise(count):
    for _ in range(count):
        yield torch.rand(2)


@torch.compile(backend="eager")
def mixed(parts):
    total = torch.zeros(2)
    for part in parts:
        total = total + part * torch.rand(2)
    return total


torch.manual_seed(0)
print(mixed(noise(3)).tolist())
