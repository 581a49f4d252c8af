import os
import torch

def f(x):
    stream = open(os.devnull)
    return x + len(stream.read())

print(torch.compile(f, backend="eager")(torch.ones(3)))
