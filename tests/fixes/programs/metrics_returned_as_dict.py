# ideal: converted-after
"""Numbers for a log and a list of predictions, beside the loss that is trained on."""

import torch


@torch.compile(backend="aot_eager")
def evaluate(logits, labels):
    loss = torch.nn.functional.cross_entropy(logits, labels)
    hits = (logits.argmax(-1) == labels).float()
    return {"loss": loss, "accuracy": float(hits.mean()), "hits": hits.tolist()}


torch.manual_seed(0)
logits = torch.randn(4, 3, requires_grad=True)
for labels in (torch.tensor([0, 1, 2, 0]), torch.tensor([2, 2, 1, 0])):
    got = evaluate(logits, labels)
    got["loss"].backward()
    print(round(got["loss"].item(), 4), got["accuracy"], got["hits"], type(got["accuracy"]))
