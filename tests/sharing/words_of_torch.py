"""The public words that redaction leaves in place, gathered from torch, NumPy and Python.

Run as a script it adds those of the installed torch to the files under `sharing/redaction/words`.
A word that is missing there is replaced in a redacted run, which is safe.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import json
import keyword
import pkgutil
import re
import textwrap
import types
from collections.abc import Iterable, Iterator
from pathlib import Path

WORDS = Path(__file__).parents[2] / "src/compilescope/report/sharing/redaction/words"
_WORD = re.compile(r"[A-Za-z_]\w*")
_SENTENCE = re.compile(r"[A-Za-z]+ [A-Za-z]+")
_LONGEST = 40

# Seen in every program, and what the rules look for.
_COMMON = """
self cls args kwargs fn L G np nn F pd plt tl tqdm numpy torch eager inductor aot_eager cudagraphs
aot_eager_decomp_partition aot_ts openxla tvm onnxrt dim keepdim dtype device requires_grad
backend dynamic fullgraph mode inplace memory_format out training weight bias forward backward
config param_groups lr alpha value params foreach capturable isolate_recompiles persistent
dataclass dataclasses Enum ABC abstractmethod Any Optional Union Callable Iterable Iterator
Sequence Tuple List Dict Set annotations __future__ typing math random logging warnings warn time
json os io sys re copy functools itertools collections contextlib threading contextmanager
nullcontext defaultdict OrderedDict namedtuple deque Counter cell_contents builtins __main__ inf
nan NoneType Logger TextIOWrapper BufferedReader BufferedWriter _warnings _operator operator
perf_counter getLogger debug info warning error critical exception log placeholder get_attr
call_module call_function call_method output cpu cuda mps xpu hpu mtia xla meta privateuseone ipu
Sym f16 bf16 f32 f64 c32 c64 c128 i8 i16 i32 i64 u8 u16 u32 u64 b8 f8e4m3fn f8e5m2 primals
tangents getitem
"""
_STDLIB = """
abc argparse array ast asyncio atexit base64 bisect builtins cmath collections concurrent.futures
contextlib contextvars copy csv ctypes dataclasses datetime decimal difflib enum errno fractions
functools gc glob gzip hashlib heapq importlib inspect io itertools json logging math
multiprocessing operator os os.path pathlib pickle platform pprint queue random re shutil signal
socket statistics string struct subprocess sys tempfile textwrap threading time timeit traceback
types typing unittest unittest.mock uuid warnings weakref zipfile zlib
"""


def public(owner: object, *, private: bool = False) -> set[str]:
    return {name for name in dir(owner) if private or not name.startswith("_")}


def words_in(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text)}


def literals(files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or node in documents:
                continue
            if isinstance(node.value, str):
                yield node.value


def python_names() -> set[str]:
    kinds = (
        str, bytes, list, dict, set, frozenset, tuple, int, float, complex, bool, object, type,
        range, slice, property, staticmethod, classmethod, BaseException, types.FunctionType,
        types.CodeType, types.MethodType, types.ModuleType, types.GeneratorType, types.FrameType,
        types.CellType, types.TracebackType,
    )  # fmt: skip
    found = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
    for kind in kinds:
        found |= public(kind, private=True)
    return found | {
        "__init__", "__new__", "__call__", "__enter__", "__exit__", "__iter__", "__next__",
        "__getattr__", "__getitem__", "__setitem__", "__len__", "__contains__", "__del__",
        "__post_init__", "__torch_function__", "__torch_dispatch__", "__slots__", "__all__",
        "__file__", "__path__", "__version__", "__builtins__", "__wrapped__", "__match_args__",
    }  # fmt: skip


def torch_names() -> set[str]:
    import torch
    import torch.nn.functional

    found = set()
    for owner in (torch, torch.nn, torch.nn.functional, torch.optim, torch.autograd.Function):
        found |= {name for name in public(owner) if not _is_module(owner, name)}
    for owner in (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, torch.nn.Parameter):
        found |= public(owner, private=True)
    found |= {"_modules", "_parameters", "_buffers", "_C", "_nn", "_ops"}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        # The rest are the methods of Python's own types.
        if space in ("aten", "prims") and "Tensor" in str(schema):
            found.add(name)
    return found | set(torch._C.DispatchKey.__members__)


def dotted_names() -> set[str]:
    """Names that are kept after a public root and a dot: `torch.cuda.synchronize`, `np.where`."""
    import numpy
    import torch
    import torch._dynamo.config
    import torch._functorch.config
    import torch._inductor.config

    root = Path(torch.__file__).parent
    found = {part for p in root.rglob("*.py") for part in p.relative_to(root).with_suffix("").parts}
    settings = (torch._dynamo.config, torch._inductor.config, torch._functorch.config)
    for config in settings:
        found |= {part for name in config.get_config_copy() for part in name.split(".")}
    found |= {schema.overload_name for schema in torch._C._jit_get_all_schemas()}
    owners: list[object] = [
        torch.nn, torch.nn.functional, torch.nn.init, torch.nn.utils, torch.optim,
        torch.optim.lr_scheduler, torch.autograd, torch.cuda, torch.compiler, torch.linalg,
        torch.fft, torch.special, torch.sparse, torch.func, torch.amp, torch.distributed,
        torch.distributions, torch.library, torch._dynamo, torch.utils.data,
        torch.utils.checkpoint, numpy, numpy.random, numpy.linalg,
    ]  # fmt: skip
    owners += [importlib.import_module(name) for name in _STDLIB.split()]
    for owner in owners:
        found |= public(owner)
    return {*found, "default", "ops", "aten", "prims", "graph_break"}


def _is_module(owner: object, name: str) -> bool:
    return isinstance(getattr(owner, name, None), types.ModuleType)


def dynamo_classes() -> set[str]:
    """Classes that Dynamo's contexts name without their module."""
    import torch._dynamo.exc
    import torch._dynamo.source
    import torch._dynamo.variables

    found = set()
    modules = [torch._dynamo.exc, torch._dynamo.source]
    for info in pkgutil.iter_modules(torch._dynamo.variables.__path__):
        modules.append(getattr(torch._dynamo.variables, info.name))
    for module in modules:
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__.startswith("torch._dynamo"):
                found.add(name)
    return found


def dynamo_helpers() -> set[str]:
    """Functions that the text of guards calls."""
    import torch._dynamo.guards

    root = Path(torch._dynamo.guards.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in root.rglob("*.py")]
    found = {word for text in texts for word in re.findall(r"\b___?[a-z]\w*", text)}
    kept = {word for word in found if word.startswith(("___", "__math_"))}
    return kept | {
        "check_tensor", "check_no_aliasing", "hasattr", "utils_device", "CURRENT_DEVICE",
        "_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices",
        "_dynamo_unbacked_indices", "_dynamo_strict_unbacked_indices", "DispatchKeySet",
        "_TorchCompileWrapper", "_TorchCompileInductorWrapper", "compiler", "BACKEND_MATCH",
    }  # fmt: skip


def messages() -> set[str]:
    """Words of Dynamo's own sentences."""
    import torch

    root = Path(torch.__file__).parent
    table = json.loads((root / "_dynamo/graph_break_registry.json").read_text(encoding="utf-8"))
    texts = []
    for variants in table.values():
        for one in variants:
            texts += [one["Gb_type"], one.get("Context", ""), one.get("Explanation", "")]
            texts += one.get("Hints", [])
    files = [*(root / "_dynamo").rglob("*.py"), root / "_inductor/cudagraph_utils.py"]
    spoken = [text for text in literals(files) if len(text) < 400 and _SENTENCE.search(text)]
    return words_in(texts) | words_in(spoken) | {
        "File", "line", "in", "code", "Hint", "HINT", "Explanation", "return_value", "reason",
        "generic_jump", "recompile_limit", "accumulated_recompile_limit",
    }  # fmt: skip


def errors() -> set[str]:
    """Words of PyTorch's messages about errors: fewer, for there a user's own may stand."""
    import torch

    root = Path(torch.__file__).parent
    places = (
        "_dynamo/exc.py", "_meta_registrations.py", "_prims_common/__init__.py",
        "_prims_common/wrappers.py", "_subclasses/fake_tensor.py", "_inductor/exc.py",
        "fx/experimental/symbolic_shapes.py",
    )  # fmt: skip
    texts = [text for text in literals(root / place for place in places) if len(text) < 400]
    known = """
    Recompiling function in triggered by the following guard failure s User stack trace raised File
    line Set for the internal stack trace please do this especially if you re reporting a bug to
    PyTorch For even more developer context set TORCHDYNAMO_VERBOSE TORCH_LOGS mat1 and mat2 shapes
    cannot be multiplied The size of tensor must match at non singleton dimension expected but got
    found object has no attribute takes positional argument arguments were given missing required
    unsupported operand type types unexpected keyword not supported implemented out of range index
    call_function call_method Traceback most recent last torch_dynamo_resume_in While executing
    Original traceback from user code Dynamo failed to run FX node with fake tensors got X only
    integer tensors single element can converted Expected all same device at least two devices
    element does not require grad and have grad_fn one variables needed for gradient computation
    has been modified by an inplace operation shape is invalid for input size batch scalar dtype
    value cannot convert expand existing number sizes provided greater or equal dimensions
    mutated inputs instances Found from skipping cudagraphs due cpu memory out CUDA
    """
    return words_in(text for text in texts if _SENTENCE.search(text)) | words_in([known])


def generated() -> set[str]:
    """Words of graphs, and of the code that Inductor writes."""
    import torch

    torch_root = Path(torch.__file__).parent
    root = torch_root / "_inductor"
    files = [*(root / "codegen").rglob("*.py"), root / "runtime/triton_helpers.py"]
    files += [
        root / "graph.py",
        root / "async_compile.py",
        root / "utils.py",
        root / "scheduler.py",
    ]
    files.append(torch_root / "fx/graph.py")
    described = torch_root / "_functorch/_aot_autograd/descriptors.py"
    names = words_in([described.read_text(encoding="utf-8")]) if described.exists() else set()
    return words_in(literals(files)) | {word for word in names if "AOT" in word} | {
        "inner_f", "fx_pytree", "tree_flatten_spec", "tree_unflatten", "_in_spec", "_out_spec",
        "pytree", "full_default", "grad_of", "target", "idx", "in_out_ptr", "out_ptr", "File",
        "code",
        "joint_helper", "joint_forward", "GraphModule", "lambda", "kwargs", "num_users",
    }  # fmt: skip


def gather() -> dict[str, set[str]]:
    code = python_names() | torch_names() | set(_COMMON.split())
    code |= dynamo_classes() | dynamo_helpers()
    found = {
        "code": code,
        "dotted": dotted_names() - code,
        "prose": messages() - code,
        "errors": errors() - code,
        "generated": generated() - code,
    }
    return {name: {w for w in words if _fits(w)} for name, words in found.items()}


def _fits(word: str) -> bool:
    return bool(_WORD.fullmatch(word)) and len(word) <= _LONGEST and word.isascii()


def main() -> None:
    WORDS.mkdir(exist_ok=True)
    for name, words in gather().items():
        path = WORDS / f"{name}.txt"
        known = set(path.read_text().split()) if path.exists() else set()
        text = "\n".join(textwrap.wrap(" ".join(sorted(known | words)), 100))
        path.write_text(text + "\n")


if __name__ == "__main__":
    main()
