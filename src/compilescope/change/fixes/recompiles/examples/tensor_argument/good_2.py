import torch


@torch.compile(backend="eager")
@torch.no_grad()
def follow(teacher, student, m):
    for t, s in zip(teacher, student):
        t.mul_(m).addcmul_(s, 1 - m)


teacher, student = [torch.zeros(3)], [torch.ones(3)]
for step in range(3):
    follow(teacher, student, torch.tensor(1 - 0.5 / (step + 2), dtype=torch.float64))
