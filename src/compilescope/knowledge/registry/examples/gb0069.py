"""An import inside the compiled function fails."""

import torch


def f(x):
    try:
        import no_such_module_anywhere  # breaks here
    except ImportError:
        return x + 1
    return no_such_module_anywhere.run(x)


try:
    import no_such_module_anywhere as found
except ImportError:
    found = None


def fixed(x):
    return x + 1 if found is None else found.run(x)


def inputs():
    return (torch.ones(3),)
