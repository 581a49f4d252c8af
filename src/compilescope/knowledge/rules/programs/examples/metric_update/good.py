import torch


class Task(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 1)
        self.seen = {"mean": []}

    def forward(self, x):
        y = self.net(x)
        return y.square().mean(), y.detach().mean()


torch.manual_seed(0)
task = Task()
fast = torch.compile(task, backend="eager")
for step in range(3):
    _, score = fast(torch.ones(2, 3) * step)
    task.seen["mean"].append(score.item())
print([round(each, 3) for each in task.seen["mean"]])
