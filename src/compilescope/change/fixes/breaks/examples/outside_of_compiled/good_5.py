import torch


@torch.compiler.disable
def check(values):
    if values.isnan().any():
        raise ValueError("not a number")


@torch.compile(backend="eager")
def _score_results(x):
    logs = x.log()
    result = logs + 1
    return logs, result


def score(x):
    logs, result = _score_results(x)
    check(logs)
    return result


for value in (4.0, -4.0):
    try:
        score(torch.full((3,), value))
    except ValueError:
        pass
