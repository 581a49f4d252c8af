# ideal: dynamic-true
import torch as th


def scaled_by(factor):
    def apply(x):
        return (x * factor).tanh()

    return th.compile(apply, backend="eager")


outs = []
for factor in (2, 3, 5):
    outs.append(scaled_by(factor)(th.linspace(0, 1, 4)))
print(th.stack(outs).sum(1))
