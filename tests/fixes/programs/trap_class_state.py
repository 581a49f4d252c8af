# ideal: none
# trap: each call has a class of its own, whose list starts empty; one class for all would fill up
# sound: outside-of-compiled
# Where torch 2.12 breaks at the class it also compiles the rest for each of them: then the class
# made outside leaves the recompile and takes the break away.
import torch


def f(x):
    class Trace:
        steps = []

    for n in range(2):
        Trace.steps.append(n)
    return x + len(Trace.steps)


run = torch.compile(f, backend="eager")
print(run(torch.zeros(2)).tolist(), run(torch.zeros(2)).tolist())
