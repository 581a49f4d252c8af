# ideal: list-for-iterator
import torch


@torch.compile(backend="eager")
def chain(x, layers):
    for weight, bias in layers:
        x = torch.relu(x @ weight + bias)
    return x


eye = torch.eye(3)
weights = [eye, 2 * eye, 3 * eye]
biases = [torch.ones(3), torch.zeros(3), -torch.ones(3)]
print(chain(torch.ones(1, 3), zip(weights, biases)).tolist())
