# ideal: where-for-if
# Three ranges, one of them left alone.
import torch as th


def squash(signal):
    level = signal.abs().mean()
    if level > 10:
        signal = signal * 0.1
    elif level > 1:
        # a little
        signal = signal * 0.5
        signal = signal - 0.25
    elif not (level > 0.01):
        signal = signal + 1
    return signal.tanh()


run = th.compile(squash, backend="eager")
for size in (100.0, 5.0, 0.5, 0.0):
    print(round(run(th.full((4,), size)).sum().item(), 5))
