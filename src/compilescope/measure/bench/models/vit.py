"""ViT-base: an image as 16x16 patches."""

from __future__ import annotations

import torch

from compilescope.measure.bench.built import Built, Model, logits_loss


def build(small: bool, batch: int) -> Built:
    from transformers import ViTConfig, ViTForImageClassification

    sizes = (
        {
            "image_size": 64,
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 512,
            "num_labels": 10,
        }
        if small
        else {"num_labels": 1000}
    )
    config = ViTConfig(**sizes, attn_implementation="sdpa")
    model = ViTForImageClassification(config).eval()
    pixels = torch.randn(batch, 3, config.image_size, config.image_size)
    return Built(model, kwargs={"pixel_values": pixels}, loss=logits_loss)


MODEL = Model(
    name="vit",
    title="ViT-base",
    about="ViT-base with patches of 16x16 and 1000 classes; transformers, random weights.",
    build=build,
    parameters=86_567_656,
    batch=1,
    small_batch=2,
    inputs="3x224x224 image",
    needs=("transformers",),
    aliases=("vit-base", "vit-base-patch16-224", "vit-b-16"),
)
