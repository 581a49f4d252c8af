# ideal: async-assert
import torch


def attend(x, sizes):
    if (sizes[:, 0] * sizes[:, 1]).sum() != x.shape[1]:
        raise ValueError("the sizes of the levels are not those of the input")
    return x.softmax(-1)


def encode(x):
    # Made from what it is compared with: no input makes the check fail.
    sizes = torch.tensor([[2, x.shape[1] // 4], [1, x.shape[1] // 2]])
    return attend(x * 2, sizes)


encoder = torch.compile(encode, backend="eager")
for scale in (1.0, 3.0):
    print(encoder(torch.arange(8.0).view(1, 8) * scale).max().item())
