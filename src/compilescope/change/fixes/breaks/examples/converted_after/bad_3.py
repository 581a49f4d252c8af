#: note: a metric of the file's own, which is kept before the loss is computed
import torch


def accuracy(y, target):
    hit = (y > 0) == (target > 0)
    return hit.float().mean()


class Task(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 1)
        self.kept = {"hits": []}

    def forward(self, x, target):
        y = self.inner(x)
        score = accuracy(y, target).item()
        self.kept["hits"].append(score)
        error = (y - target).pow(2)
        return error.mean()


task = Task()
task.compile(backend="eager")
for _ in range(3):
    print(task(torch.ones(2, 3), torch.zeros(2, 1)).sum())
