"""Model families of `transformers`, built small from their configs with random weights.

Each is (model, call): `call` gets the compiled model and runs it the way its users do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as tf

Call = Callable[[Any], Any]
FAMILIES: dict[str, Callable[[], tuple[torch.nn.Module, Call]]] = {}

_TEXT = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
_TEXT["intermediate_size"] = 37


def family(build: Callable[[], tuple[torch.nn.Module, Call]]) -> Callable[..., Any]:
    FAMILIES[build.__name__] = build
    return build


def ids(length: int = 16) -> torch.Tensor:
    return torch.randint(0, 90, (2, length))


@family
def bert():
    model = tf.BertModel(tf.BertConfig(**_TEXT)).eval()
    return model, lambda m: (m(ids()), m(ids(12)))


@family
def t5():
    config = tf.T5Config(
        vocab_size=99, d_model=32, d_ff=37, num_layers=2, num_heads=2, d_kv=16,
        decoder_start_token_id=0,
    )  # fmt: skip
    return tf.T5ForConditionalGeneration(config).eval(), lambda m: m(input_ids=ids(), labels=ids())


@family
def bart_training_with_layerdrop():
    config = tf.BartConfig(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=37, decoder_ffn_dim=37,
        encoder_layerdrop=0.1, decoder_layerdrop=0.1,
    )  # fmt: skip
    model = tf.BartForConditionalGeneration(config).train()
    return model, lambda m: m(input_ids=ids(), labels=ids()).loss.backward()


@family
def mixtral_training():
    config = tf.MixtralConfig(**_TEXT, num_key_value_heads=2, num_local_experts=4)
    model = tf.MixtralForCausalLM(config).train()
    return model, lambda m: m(ids(), labels=ids()).loss.backward()


@family
def switch_transformers():
    config = tf.SwitchTransformersConfig(
        vocab_size=99, d_model=32, d_ff=37, num_layers=2, num_heads=2, d_kv=16, num_experts=4,
        num_decoder_layers=2,
    )  # fmt: skip
    model = tf.SwitchTransformersModel(config).eval()
    return model, lambda m: m(input_ids=ids(), decoder_input_ids=ids())


@family
def longformer():
    config = tf.LongformerConfig(**_TEXT, attention_window=[4, 4])
    return tf.LongformerModel(config).eval(), lambda m: m(ids())


@family
def big_bird():
    return tf.BigBirdModel(tf.BigBirdConfig(**_TEXT)).eval(), lambda m: m(ids())


@family
def mamba():
    config = tf.MambaConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4)
    return tf.MambaModel(config).eval(), lambda m: m(ids())


@family
def wav2vec2_training_with_spec_augment():
    config = tf.Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=37,
        conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
        mask_time_prob=0.5, mask_time_length=2, num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    return tf.Wav2Vec2Model(config).train(), lambda m: m(torch.randn(2, 2000))


@family
def yolos_detection():
    config = tf.YolosConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=37,
        image_size=[32, 32], patch_size=8, num_detection_tokens=5,
    )  # fmt: skip
    return tf.YolosForObjectDetection(config).eval(), lambda m: m(torch.randn(1, 3, 32, 32))


@family
def gpt2_training():
    model = tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=2))
    return model.train(), lambda m: m(ids(), labels=ids()).loss.backward()


@family
def resnet():
    config = tf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    return tf.ResNetModel(config).train(), lambda m: m(torch.randn(2, 3, 32, 32))


@family
def llama_generate():
    model = tf.LlamaForCausalLM(tf.LlamaConfig(**_TEXT)).eval()

    def generate(_: Any) -> None:
        # Users compile the forward; generate() calls it once a token.
        model.forward = torch.compile(model.forward, backend="eager")
        model.generate(ids(), max_new_tokens=4, do_sample=False)

    return model, generate


@family
def lstm():
    return torch.nn.LSTM(8, 16, 2), lambda m: m(torch.randn(5, 3, 8))[0].sum().backward()
