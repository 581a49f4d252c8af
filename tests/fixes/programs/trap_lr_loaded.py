# ideal: none
# trap: a checkpoint brings the learning rate back as a number, which cannot be filled
import copy

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
step = torch.compile(opt.step, backend="aot_eager")
saved = copy.deepcopy(opt.state_dict())

for n in range(3):
    opt.param_groups[0]["lr"] = 0.1 / (n + 1)
    model(torch.ones(2, 4)).sum().backward()
    step()
    opt.zero_grad()
opt.load_state_dict(saved)
for n in range(2):
    opt.param_groups[0]["lr"] = 0.2 / (n + 1)
print(type(opt.param_groups[0]["lr"]).__name__)
