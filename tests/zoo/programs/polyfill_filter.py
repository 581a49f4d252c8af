"""Shows a print in a lambda that filter calls, so torch's own polyfill is the innermost caller."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    kept = list(filter(lambda n: print(n) or n > 1, [1, 2, 3]))  #: break "print(" Failed to trace builtin operator #: category logging
    return y * len(kept)


f(torch.ones(3))
