"""Shows json.dumps of a small dict."""

import json

import torch

#: graphs 2


@torch.compile(backend="eager")
def f(x):
    y = x + 1
    text = json.dumps({"a": 1})  #: break "json.dumps(" Unsupported method call #: without tracing/json break "json.dumps(" Attempted to call function marked as skipped #: category skipped-function
    return y * len(text)


f(torch.ones(3))
