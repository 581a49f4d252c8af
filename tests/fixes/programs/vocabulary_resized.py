# ideal: dynamic-parameters
import os
import warnings

warnings.filterwarnings("ignore")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch.nn as nn  # noqa: E402
from torch import arange, compile, manual_seed  # noqa: E402


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)

    def forward(self, ids):
        return self.embed(ids).mean(1)


def main():
    manual_seed(0)
    model = Bag().eval()
    run = compile(model, backend="eager")
    for words in (20, 24, 28):
        model.embed = nn.Embedding(words, 6)
        print(words, f"{run(arange(8).view(2, 4)).sum().item():.4f}")


if __name__ == "__main__":
    main()
