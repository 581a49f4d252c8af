"""Shows breaks behind calls that are chained, one a line, in a function that goes on after a break:
Dynamo's own lines of such a function are too far down."""

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    print("before")  #: break "print(" Failed to trace builtin operator #: category logging
    y = (
        x.sin()  # One call a line.
        .sum(  # Over all of it.
            dim=-1
        )
        .cos()
    )
    print("behind")  #: break "print(" Failed to trace builtin operator #: category logging
    return y * 2


f(torch.ones(3))
