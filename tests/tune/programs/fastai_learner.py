"""fastai's one loop trains and validates, with an optimizer of its own."""

import torch
from fastai.basics import DataLoaders, Learner
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(80, 8), torch.randn(80, 8))
held = TensorDataset(torch.randn(16, 8), torch.randn(16, 8))
loaders = DataLoaders(DataLoader(data, batch_size=4), DataLoader(held, batch_size=4))
model = torch.nn.Linear(8, 8)
Learner(loaders, torch.compile(model), loss_func=torch.nn.MSELoss()).fit(3)
