import torch

@torch.compile(backend="eager")
def f(value):
    return value * 2

for batch in ({"a": torch.ones(3)}, {"b": torch.ones(3)}):
    print(sum(f(value) for value in batch.values()))
