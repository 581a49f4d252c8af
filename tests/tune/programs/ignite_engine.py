"""ignite's one loop trains and evaluates; the model is compiled by the user."""

import torch
from ignite.engine import Engine, Events, create_supervised_evaluator
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.compile(torch.nn.Linear(8, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def train_step(engine, batch):
    optimizer.zero_grad()
    loss = model(batch[0]).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


trainer = Engine(train_step)
evaluator = create_supervised_evaluator(model)
data = TensorDataset(torch.randn(80, 8), torch.randn(80, 8))
loader = DataLoader(data, batch_size=4)


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(loader, epoch_length=4)


trainer.run(loader, max_epochs=3)
