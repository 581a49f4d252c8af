# ideal: none
# trap: a helper keeps the old rate: of a tensor it would keep what is filled in later
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
step = torch.compile(opt.step, backend="aot_eager")
kept = []


def warm(group, n):
    kept.append(group["lr"])
    group["lr"] = 0.1 * (n + 1) / 3


for n in range(3):
    warm(opt.param_groups[0], n)
    model(torch.ones(2, 4)).sum().backward()
    step()
    opt.zero_grad()
print([round(each, 4) for each in kept])
