"""An autoencoder in training by Lightning's Trainer, with an evaluation after each epoch."""

import itertools
import sys
import time

import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

SMALL = "--small" in sys.argv
WIDTH, DEPTH, EPOCH = (64, 2, 32) if SMALL else (512, 6, 256)


def now():
    if torch.cuda.is_available() and not SMALL:
        torch.cuda.synchronize()
    return time.perf_counter()


class Auto(pl.LightningModule):
    def __init__(self):
        super().__init__()
        inner = [m for _ in range(DEPTH) for m in (nn.Linear(WIDTH, WIDTH), nn.GELU())]
        self.net = nn.Sequential(*inner)

    def training_step(self, batch, index):
        (x,) = batch
        return functional.mse_loss(self.net(x), x)

    def validation_step(self, batch, index):
        (x,) = batch
        return functional.mse_loss(self.net(x), x)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Clock(pl.Callback):
    def __init__(self):
        self.times = []

    def on_train_batch_start(self, trainer, module, batch, index):
        if trainer.current_epoch == 2 and index % (EPOCH // 8) == 0:
            self.times.append(now())


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(64 * EPOCH, WIDTH)), batch_size=64)
    held = DataLoader(TensorDataset(torch.randn(512, WIDTH)), batch_size=64)
    model, clock = Auto(), Clock()
    model.net = torch.compile(model.net)
    trainer = pl.Trainer(
        max_epochs=3,
        accelerator="cpu" if SMALL else "auto",
        enable_checkpointing=False,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    trainer.fit(model, loader, held)
    print("step_ms", *((b - a) * 8000 / EPOCH for a, b in itertools.pairwise(clock.times)))


if __name__ == "__main__":
    main()
