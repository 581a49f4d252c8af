"""BERT-base-multilingual-cased: a text classifier in the size of the published model."""

from __future__ import annotations

import torch

from compilescope.measure.bench.built import Built, Model, logits_loss


def build(small: bool, batch: int) -> Built:
    from transformers import BertConfig, BertForSequenceClassification

    length = 32 if small else 128
    sizes = (
        {
            "vocab_size": 1000,
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 512,
        }
        if small
        else {"vocab_size": 119547}
    )
    config = BertConfig(**sizes, use_cache=False, attn_implementation="sdpa")
    model = BertForSequenceClassification(config).eval()
    ids = torch.randint(config.vocab_size, (batch, length))
    return Built(model, kwargs={"input_ids": ids}, loss=logits_loss)


MODEL = Model(
    name="bert",
    title="BERT-base-multilingual",
    about="BERT-base-multilingual-cased as a text classifier; transformers, random weights.",
    build=build,
    parameters=177_854_978,
    batch=1,
    small_batch=2,
    inputs="128 tokens",
    needs=("transformers",),
    aliases=("bert-base", "bert-base-multilingual", "bert-base-multilingual-cased", "mbert"),
)
