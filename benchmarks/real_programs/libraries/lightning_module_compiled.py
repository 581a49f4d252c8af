"""A Lightning autoencoder trained with the whole LightningModule passed through torch.compile."""

import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class LitAutoEncoder(L.LightningModule):
    def __init__(self, width=32, code=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, code))
        self.decoder = nn.Sequential(nn.Linear(code, 16), nn.ReLU(), nn.Linear(16, width))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        return F.mse_loss(self(x), x)

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        reconstruction = self(x)
        loss = F.mse_loss(reconstruction, x)
        self.log("val_loss", loss)
        self.log("val_cosine", F.cosine_similarity(reconstruction, x).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def make_loader(size, seed):
    basis = torch.randn(4, 32, generator=torch.Generator().manual_seed(5))
    mixture = torch.randn(size, 4, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(mixture @ basis), batch_size=32)


def main():
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(7, verbose=False)
    model = LitAutoEncoder()
    compiled = torch.compile(model)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(compiled, make_loader(128, 0), make_loader(64, 1))
    print("steps", trainer.global_step)
    for name in ("val_loss", "val_cosine"):
        print(name, round(trainer.callback_metrics[name].item(), 3))


if __name__ == "__main__":
    main()
