import torch


@torch.compiler.disable
def check(values):
    if values.isnan().any():
        raise ValueError("not a number")


def _score_results(x):
    logs = x.log()
    result = logs + 1
    return logs, result


@torch.compile(backend="eager")
# left to Python, but not what it calls; torch.compiler has no decorator for this
@torch._dynamo.decorators.skip
def score(x):
    logs, result = _score_results(x)
    check(logs)
    return result


for value in (4.0, -4.0):
    try:
        score(torch.full((3,), value))
    except ValueError:
        pass
