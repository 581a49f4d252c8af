# ideal: rnn-traced
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, words=20, width=8, tags=3):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, tags)

    def forward(self, ids):
        states, _ = self.lstm(self.embed(ids))
        return self.out(states).log_softmax(-1)


torch.manual_seed(1)
tagger = torch.compile(Tagger().eval(), backend="aot_eager")
with torch.no_grad():
    print(tagger(torch.arange(10).reshape(2, 5)).argmax(-1).tolist())
