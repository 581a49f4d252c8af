# ideal: none
# trap: each call passes another object, and the first call prepares only the first one
import torch


class Task:
    def __init__(self):
        self.kind = None


@torch.compile(backend="eager")
def score(x, task):
    if task.kind is None:
        task.kind = "mean"
        return x.sum()
    return x.mean()


tasks = [Task(), Task()]
for n in range(6):
    task = tasks[n % 2]
    print(n, score(torch.arange(4.0) + n, task).item(), task.kind)
