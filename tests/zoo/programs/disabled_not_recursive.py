"""Shows a function disabled without recursion: what it calls is compiled again."""

import torch

#: graphs 3


def leaf(x):
    return x * 3


@torch.compiler.disable(recursive=False)
def helper(x):
    return leaf(x)


@torch.compile(backend="eager")
def f(x):
    y = helper(x + 1)  #: break "helper(" Skip inlining `torch.compiler.disable()`d function #: category explicit
    return y.relu()


f(torch.ones(3))
