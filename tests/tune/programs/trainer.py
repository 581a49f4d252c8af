"""transformers' Trainer compiles the model, makes the optimizer and has the loops."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __init__(self, count):
        self.ids = torch.randint(0, 100, (count, 8))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index, 0] % 2}


def main():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=100,
        hidden_size=8,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
    )
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=3,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            eval_strategy="epoch",
            torch_compile=True,
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model, args=arguments, train_dataset=Rows(80), eval_dataset=Rows(16)
        )
        trainer.train()


if __name__ == "__main__":
    main()
