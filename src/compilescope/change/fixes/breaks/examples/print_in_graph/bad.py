import torch


# One step.
def f(x):
    y = x + 1
    # Where are we?
    print("step", y.mean().item(), sep=": ", end="!\n")  # every step
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
