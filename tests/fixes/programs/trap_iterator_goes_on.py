# ideal: none
# trap: the next call goes on where the last one stopped
import torch


@torch.compile(backend="eager")
def first_large(stream, limit):
    for x in stream:
        if len(x) > limit:
            return x * 2
    return None


def evaluate(run):
    parts = iter([torch.ones(n) * n for n in (1, 3, 2, 4)])
    return [run(parts, 2) for _ in range(2)]


print(evaluate(first_large))
