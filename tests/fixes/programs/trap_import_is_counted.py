# ideal: none
# trap: the failed import is counted; tried once at the top it would be counted once
import torch

misses = []


def f(x):
    try:
        import a_library_that_is_not_there  # noqa: F401
    except ImportError:
        misses.append(1)
    return x + len(misses)


run = torch.compile(f, backend="eager")
print(run(torch.zeros(2)).tolist(), run(torch.zeros(2)).tolist(), len(misses))
