# ideal: mark-dynamic
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 6)

    def forward(self, input_ids, attention_mask=None):
        hidden = self.embed(input_ids)
        return (hidden * attention_mask.unsqueeze(-1)).sum(1)


def collate(length):
    ids = torch.arange(length).repeat(3, 1) % 50
    return {"input_ids": ids, "attention_mask": torch.ones(3, 8)}


torch.manual_seed(0)
model = torch.compile(Model(), backend="eager")
for width in (4, 6):
    rows = torch.arange(8).repeat(width, 1)
    batch = {"input_ids": rows, "attention_mask": torch.ones(4, 8)[:1]}
    print(model(**batch).sum().item())
