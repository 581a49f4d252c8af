import torch


class History:
    def __init__(self):
        self.losses = []

    @torch.compiler.disable
    def record(self, loss):
        self.losses.append(loss.detach())


history = History()


def _f_results(x):
    loss = x.sin().sum()
    value = loss * 2
    return loss, value


# left to Python, but not what it calls; no public decorator does this
@torch._dynamo.decorators.skip
def f(x):
    loss, value = _f_results(x)
    history.record(loss)
    return value


g = torch.compile(f, backend="eager")
for _ in range(3):
    g(torch.ones(3))
