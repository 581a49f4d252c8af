# ideal: dynamic-sources
import torch

EPOCH = 2


@torch.compile(backend="eager")
def anneal(x):
    return x / EPOCH


def main():
    global EPOCH
    x = torch.full((3,), 12.0)
    for _ in range(4):
        print(EPOCH, anneal(x).tolist())
        EPOCH += 1


main()
