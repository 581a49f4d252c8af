# ideal: tensor-logic
# Two truths joined, then used as a number.
import torch


def boost(x, y):
    alarm = (x > 2).any() or (y > 2).any() and not (x == y).all()
    return x + y * alarm


compiled = torch.compile(boost, backend="eager")
low, high = torch.zeros(3), torch.full((3,), 3.0)
for pair in ((low, low), (low, high), (high, low), (high, high)):
    print(compiled(*pair).tolist())
