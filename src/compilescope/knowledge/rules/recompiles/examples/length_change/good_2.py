import torch

@torch.compile(backend="eager")
def f(batch):
    return sum(batch.values())

print(f({"a": torch.ones(3), "b": torch.zeros(3)}))
print(f({"a": torch.ones(3), "b": torch.ones(3)}))
