# ideal: any
# trap: SciPy raises for a tensor that requires a gradient; an operator would not
import torch
from scipy.optimize import linear_sum_assignment


def matched(cost):
    rows, columns = linear_sum_assignment(cost)
    return cost[torch.as_tensor(rows), torch.as_tensor(columns)].sum()


run = torch.compile(matched, backend="eager")
torch.manual_seed(0)
cost = torch.rand(3, 4)
print(f"{run(cost).item():.4f}")
try:
    run(cost.requires_grad_())
except RuntimeError:
    print("detach it first")
