"""What a custom TORCH_LOGS_FORMAT writes before a message, learnt from its lines."""

from __future__ import annotations

from compilescope.logs.text.dynamo.custom import Prefixes

MESSAGE = b"Graph break in user code at /u/a.py:3\n"


def test_columns_may_be_wider_and_words_others() -> None:
    prefixes = Prefixes()
    assert prefixes.learn(b"12:30:01 DEBUG   torch.fx | ")
    assert prefixes.start(b"09:07:59 WARNING torch._dynamo |  " + MESSAGE) == (34, "graph_breaks")
    assert not prefixes.begins(b"09:07:59 WARNING")


def test_one_long_word_is_no_prefix_of_many_words_and_is_read_at_once() -> None:
    """Where blanks between words were left out, it could be split up in countless ways."""
    prefixes = Prefixes()
    assert prefixes.learn(b" ".join([b"word"] * 40) + b": ")
    assert not prefixes.begins(b"w" * 5000)
    assert prefixes.start(b" ".join([b"other"] * 40) + b": " + MESSAGE) is not None
