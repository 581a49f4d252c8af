import hashlib

import torch


def f(x, name):
    seed = int(hashlib.md5(name.encode()).hexdigest()[:4], 16)  # of the layer
    return x + seed


torch.compile(f, backend="eager")(torch.ones(3), "first")
