"""Prices parcels with a compiled network; its parts lie in modules of their own."""

import records
import torch
from network import Pricer, settings_for


def price_all(model, batches):
    return [model(batch) for batch in batches]


def main():
    torch.manual_seed(0)
    settings = settings_for("small")
    model = torch.compile(Pricer(settings), backend="eager")
    batches = list(records.batches(3, settings.width))
    prices = price_all(model, batches)
    print(records.table(prices))


if __name__ == "__main__":
    main()
