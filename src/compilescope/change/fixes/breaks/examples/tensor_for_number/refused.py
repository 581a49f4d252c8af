#: because: would make the result float64, not float32
import torch


def weigh(counts, weight):
    return counts * weight.item()


weigh = torch.compile(weigh, backend="eager")
weigh(torch.tensor([1, 2, 3]), torch.tensor(0.1, dtype=torch.float64))
