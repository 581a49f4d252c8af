#: note: The test has a name: a tensor's truth, or a flag that Dynamo can guard on.
import torch


class Block(torch.nn.Module):
    def forward(self, x, mask):
        needs_mask = mask.any() or self.training
        y = x.sin()
        if needs_mask:  # some rows are padded
            y = y.masked_fill(mask, 0.0)
        return y + 1


torch.compile(Block(), backend="eager")(torch.ones(3), torch.zeros(3, dtype=torch.bool))
