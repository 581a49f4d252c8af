# ideal: grad-mode-called
"""Distillation: the teacher runs under a no_grad that is kept on the module."""

import torch as th


class Distil(th.nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = th.no_grad()
        self.teacher = th.nn.Linear(4, 4)
        self.student = th.nn.Linear(4, 4)

    def forward(self, x):
        with self.frozen:
            target = self.teacher(x)
        return ((self.student(x) - target) ** 2).mean()


th.manual_seed(0)
model = Distil()
loss = th.compile(model, backend="aot_eager")(th.ones(2, 4))
loss.backward()
print(
    f"{loss.item():.5f}", model.teacher.weight.grad is None, model.student.weight.grad is not None
)
