#: note: A message in the graph is a constant: it names what it cannot show.
from torch import compile, ones


def f(x):
    assert x.ndim == 1 and x.abs().max() < 4, f"up to 4, not {x.max()}"
    return x + 1


compile(f, backend="eager")(ones(3))
