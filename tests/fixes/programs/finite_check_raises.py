# ideal: async-assert
# A check that stays in the graph: RuntimeError with the same words.
import torch


class Head(torch.nn.Module):
    def forward(self, logits):
        if not torch.isfinite(logits).all():
            raise RuntimeError("logits are not finite")
        return logits.softmax(-1)


head = torch.compile(Head(), backend="aot_eager")
print(head(torch.zeros(2, 4)).tolist())
try:
    head(torch.full((2, 4), float("inf")))
except RuntimeError as error:
    print("stopped:", error)
