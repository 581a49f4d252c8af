# ideal: print-in-graph
# short: what the bar holds is compared by the names that the function itself uses
"""A progress bar that is moved on inside of the step."""

import torch
from tqdm import tqdm

bar = tqdm(total=3, ascii=True, mininterval=1e9)


def step(x, number):
    y = (x * 2).sin()
    bar.set_postfix(mean=round(y.mean().item(), 3), refresh=False)
    return y.sum() * number


compiled = torch.compile(step, backend="eager", dynamic=True)
total = sum(compiled(torch.full((3,), float(n)), 2.0).item() for n in range(3))
print(round(total, 4), bar.postfix)
