import torch

known = set()


def on_disk(fn, x):
    torch.compiler.reset()
    torch.compile(fn)(x)
    found = fn.__name__ in known
    known.add(fn.__name__)
    return found
