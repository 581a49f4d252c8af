"""Lightning with callbacks, EMA-free, inner network compiled; nothing to improve except the last batch."""
import tempfile

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(L.LightningModule):
    def __init__(self, width=32, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        net = nn.Sequential(nn.Linear(6, width), nn.BatchNorm1d(width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(width, 1))
        self.net = torch.compile(net, backend="aot_eager")

    def step(self, batch, stage):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x).squeeze(-1), y)
        self.log(f"{stage}_loss", loss, on_epoch=True, on_step=False)
        return loss

    def training_step(self, batch, index):
        return self.step(batch, "train")

    def validation_step(self, batch, index):
        self.step(batch, "val")

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.StepLR(opt, 1, 0.7)}


def dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return TensorDataset(x, x[:, 0] * x[:, 1] + x[:, 2])


class PrintLoss(L.Callback):
    def on_validation_epoch_end(self, trainer, module):
        print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})


def main():
    L.seed_everything(0, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
            callbacks=[PrintLoss(), EarlyStopping("val_loss", patience=3), ModelCheckpoint(folder, monitor="val_loss")],
        )
        trainer.fit(Regressor(), DataLoader(dataset(128, 0), 32, shuffle=True), DataLoader(dataset(64, 1), 32))


if __name__ == "__main__":
    main()
