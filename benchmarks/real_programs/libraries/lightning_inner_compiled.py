"""A Lightning classifier whose network is compiled in configure_model and logged outside of it."""

import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    def __init__(self, features=16, classes=4):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, classes)
        )

    def forward(self, x):
        return self.body(x)


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = Network()
        self.network.compile()

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.network(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.network(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_accuracy", (logits.argmax(-1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def make_loader(size, seed, shuffle=False):
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(4, 16, generator=torch.Generator().manual_seed(99))
    labels = torch.randint(0, 4, (size,), generator=generator)
    points = centres[labels] + torch.randn(size, 16, generator=generator)
    return DataLoader(TensorDataset(points, labels), batch_size=32, shuffle=shuffle)


def main():
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), make_loader(192, 0, shuffle=True), make_loader(64, 1))
    for name in ("train_loss", "val_loss", "val_accuracy"):
        print(name, round(trainer.callback_metrics[name].item(), 3))


if __name__ == "__main__":
    main()
