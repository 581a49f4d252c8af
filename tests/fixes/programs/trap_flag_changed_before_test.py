# ideal: none
# trap: the flag that a truth was joined with is cleared before the truth is tested

import torch
from torch import nn


class Alarm(nn.Module):
    def __init__(self):
        super().__init__()
        self.armed = True

    def fire(self, x):
        self.armed = False
        return x * 2

    def forward(self, x):
        loud = self.armed and x.max() > 3
        x = self.fire(x)
        if loud:
            x = x - 100
        return x


alarm = Alarm()
run = torch.compile(alarm, backend="eager")
for k in (1.0, 5.0, 5.0):
    print(run(torch.full((3,), k)), alarm.armed)
    alarm.armed = True
