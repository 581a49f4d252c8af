"""The batch is made on the host, and copied from memory that is not pinned."""

#: cause transfer
#: needs cuda
import torch
from gpt import fast

fast()
images = torch.randn(256, 3, 224, 224)


@torch.compile
def model(x: torch.Tensor) -> torch.Tensor:
    return (x * 2 + 1).relu().mean()


for _ in range(40):
    model(images.cuda())  #: here
