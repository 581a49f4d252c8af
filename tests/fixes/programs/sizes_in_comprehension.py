# ideal: dynamic-true
import torch


@torch.compile(backend="aot_eager")
def normalise(x):
    return (x - x.mean()) / (x.std() + 1e-6)


if __name__ == "__main__":
    parts = [normalise(torch.arange(float(n))) for n in (4, 6, 9)]
    print([round(part.sum().item(), 3) for part in parts])
