#: because: part of a larger statement
import torch


def f(x):
    y = x + 1
    done = print("step") or y
    return done * 2


torch.compile(f, backend="eager")(torch.ones(3))
