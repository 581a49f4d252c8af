"""Lightning's Trainer has the loops; a whole LightningModule is compiled."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 8)

    def training_step(self, batch, index):
        return self.net(batch[0]).square().mean()

    def validation_step(self, batch, index):
        self.net(batch[0])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    lightning.seed_everything(0)
    loader = DataLoader(TensorDataset(torch.randn(80, 8)), batch_size=4)
    held = DataLoader(TensorDataset(torch.randn(16, 8)), batch_size=4)
    model = torch.compile(Net())
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(model, loader, held)


if __name__ == "__main__":
    main()
