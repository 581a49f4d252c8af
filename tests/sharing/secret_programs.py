"""Programs of which every name, string, comment, docstring, file and number is a secret.

Each secret has the letters "qzx" in it, and the numbers are listed: a scan of a redacted run for
either finds what was left.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

MARK = "qzx"
NUMBERS = (
    "7654321", "918273", "1234567", "9876543", "1111117", "2222227", "777123", "5557771",
    "8887771", "4443331", "4567891", "6667771", "3345671", "5554443", "4321987", "3456789",
)  # fmt: skip
_SECRET = re.compile(rf"{MARK}|(?<!\d)(?:{'|'.join(NUMBERS)})(?!\d)", re.IGNORECASE)
SCRIPT = "qzxmain.py"
SUITE = "test_qzxsuite.py"

_LAYERS = '''
"""qzxmoduledoc: a secret of Qzxcorp."""
import enum, dataclasses
import torch
from torch import nn

QZXLIMIT = 7654321
class QzxMode(enum.Enum):
    QZXFAST = "qzxfast"
    QZXSLOW = 2
@dataclasses.dataclass
class QzxBatch:
    """qzxbatchdoc"""
    qzxfield: torch.Tensor
    qzxscale: float = 0.918273
class QzxError(ValueError):
    pass
class QzxTensor(torch.Tensor):
    pass
class QzxBlock(nn.Module):
    """A block.

    qzxdocline two
    """
    def __init__(self, qzxwidth=8, *, qzxname="qzx block name"):
        super().__init__()
        self.qzxlinear = nn.Linear(qzxwidth, qzxwidth)
        self.qzxcounter = 1234567  # qzxcomment here
        self.qzxname = qzxname
        self.__qzxprivate = 9876543

    def qzxmethod(self, qzxarg, **qzxoptions):
        qzxlocal = self.qzxlinear(qzxarg) * 0.918273 + self.__qzxprivate
        print(f"qzx {qzxlocal.shape!r:>30} of {self.qzxname} \\\\n {QZXLIMIT:,}", "qzx", end="qzx")
        qzxresult = (
            qzxlocal
            .sum(  # qzx inner comment
                dim=-1
            )
            .item() if qzxoptions.get("qzxkey", False) else
            qzxlocal.mean().item()
        )
        return qzxlocal * qzxresult

    def forward(self, qzxinput, qzxmode=QzxMode.QZXFAST, **qzxkw):
        if qzxmode is QzxMode.QZXSLOW:
            qzxinput = qzxinput - 1
        if qzxinput.sum() > 7654321: raise QzxError("qzxraise message about Qzxcorp")
        return self.qzxmethod(qzxinput, **qzxkw)
'''

_WHEEL = '''
"""qzxwheeldoc"""
def qzxwheelstep(qzxw):
    # qzxwheelcomment
    if qzxw.sum() > 7654321:
        print("qzxwheelstring", qzxw)
    return qzxw + 1
'''

_MAIN = '''
"""qzxmaindoc"""
import functools, sys, pathlib, warnings, logging, json, time
import numpy as np, torch
from qzxhelpers.qzxlayers import QzxBlock, QzxBatch, QzxMode, QzxError, QzxTensor
sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib/python3.11/site-packages"))
import qzxwheel
qzxlog = logging.getLogger("qzxlogger")
QZXGLOBAL = 3456789
qzxcompile = functools.partial(torch.compile, backend="eager")

def qzxtry(qzxf, *a, **k):
    try: return qzxf(*a, **k)
    except Exception as qzxe: print("caught", type(qzxe).__name__)

qzxnet = QzxBlock()
qzxc = torch.compile(qzxnet, backend="eager")
qzxtry(qzxc, torch.ones(2, 8))
qzxtry(qzxc, torch.ones(2, 8), QzxMode.QZXSLOW)
qzxtry(qzxc, torch.ones(3, 8), qzxkey=True)
qzxnet.qzxcounter += 1; qzxnet.qzxname = "qzx other name"; qzxtry(qzxc, torch.ones(4, 8))

@qzxcompile
def qzxrecompile(qzxx, qzxn, qzxs="qzxdefault", qzxd=None, qzxobj=None):
    qzxy = qzxx * qzxn + QZXGLOBAL
    if qzxs == "qzxdefault": qzxy = qzxy + 1
    if qzxd is not None:
        for qzxk in qzxd: qzxy = qzxy + qzxd[qzxk]
    if hasattr(qzxobj, "qzxattr"): qzxy = qzxy * qzxobj.qzxattr
    return qzxy
qzxone = torch.ones(3)
for qzxn in (1111117, 2222227, 0.777123, "no"):
    qzxtry(qzxrecompile, qzxone, qzxn)
torch._dynamo.reset()
qzxtry(qzxrecompile, qzxone, 1, "qzx string one")
qzxtry(qzxrecompile, qzxone, 1, "qzx string two 5557771")
qzxtry(qzxrecompile, qzxone, 1, qzxd={"qzxkeya": qzxone})
qzxtry(qzxrecompile, qzxone, 1, qzxd={"qzxkeyb": qzxone, 8887771: qzxone})
torch._dynamo.reset()
class QzxThing: pass
class QzxOther: qzxattr = 4443331
qzxtry(qzxrecompile, qzxone, 1, qzxobj=QzxThing())
qzxtry(qzxrecompile, qzxone, 1, qzxobj=QzxOther())
qzxtry(qzxrecompile, qzxone.as_subclass(QzxTensor), 1)
QZXGLOBAL = 4567891; qzxtry(qzxrecompile, qzxone, 1)
torch._dynamo.reset()

def qzxoutermaker(qzxclosed):
    def qzxinner(qzxx, qzxg=lambda qzxz: qzxz + 6667771):
        return qzxg(qzxx) * qzxclosed
    return qzxinner
for qzxv in (2, 3345671, "qzx"): qzxtry(torch.compile(qzxoutermaker(qzxv), backend="eager"), qzxone)

def qzxbackend(qzxgm, qzxinputs):
    qzxsecret = 5554443
    raise QzxError(f"qzxbackend cannot do {len(qzxinputs)} of {qzxsecret} for Qzxcorp")
qzxtry(torch.compile(lambda qzxx: qzxx + 1, backend=qzxbackend), qzxone)

@torch.compile(backend="eager", fullgraph=True)
def qzxfull(qzxx):
    qzxlog.warning("qzx logging %s", qzxx.shape); time.time(); print("qzxprint")
    return qzxx
qzxtry(qzxfull, qzxone)

@torch.compile(backend="eager")
def qzxbreaks(qzxx, qzxb):
    warnings.warn("qzx warning text")
    qzxa = np.linalg.qr(qzxx.numpy())
    qzxfile = open("/dev/null", "w"); qzxfile.write("qzxcontent"); qzxfile.close()
    with torch.no_grad(): qzxx = qzxx + qzxb.qzxfield * qzxb.qzxscale
    qzxlist = [qzxi.item() for qzxi in qzxx.reshape(-1)[:2]]
    return json.dumps({"qzxjson": str(qzxlist)}), qzxwheel.qzxwheelstep(qzxx)
qzxtry(qzxbreaks, torch.ones(2, 2), QzxBatch(torch.ones(2, 2)))
def qzxbadshape(qzxx): return qzxx @ torch.ones(7, 9)
qzxtry(torch.compile(qzxbadshape, backend="eager"), torch.ones(3, 5))
qzxtext = "def qzxexec(qzxq):\\\\n    print('qzxexecstr')\\\\n    return qzxq + 1\\\\n"
exec(compile(qzxtext, "<qzxgenerated>", "exec"))
qzxtry(torch.compile(qzxexec, backend="eager"), qzxone)
'''

_INDUCTOR = """
import torch
import torch.nn.functional as F
@torch.library.custom_op("qzxns::qzxop", mutates_args=())
def qzxop(qzxt: torch.Tensor, qzxk: float, qzxmode: str) -> torch.Tensor:
    return qzxt * qzxk
@qzxop.register_fake
def _(qzxt, qzxk, qzxmode): return torch.empty_like(qzxt)
class QzxNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qzxweight = torch.nn.Parameter(torch.ones(8, 8))
        self.register_buffer("qzxbuf", torch.ones(8))
    def forward(self, qzxx):
        qzxhidden = F.gelu(qzxx @ self.qzxweight) * 0.918273 + 7654321
        qzxhidden = torch.ops.qzxns.qzxop(qzxhidden, 0.4321987, "qzxopstring")
        return (qzxhidden + self.qzxbuf).sum()
with torch.no_grad(): torch.compile(QzxNet())(torch.ones(4, 8))
class QzxTrained(QzxNet):
    def forward(self, qzxx):
        qzxdeep = F.gelu(qzxx @ self.qzxweight) * 0.918273
        return (qzxdeep + self.qzxbuf).sum()
torch.compile(QzxTrained())(torch.ones(4, 8)).backward()
"""

_SUITE = """
import pytest, torch
class TestQzxThing:
    @pytest.mark.parametrize("qzxp", ["qzx param/one", 7654321])
    def test_qzxcase(self, qzxp):
        @torch.compile(backend="eager")
        def qzxf(qzxx):
            print("qzxin", qzxp)
            return qzxx + 1
        qzxf(torch.ones(2))
"""


def leaks(text: str) -> list[str]:
    """The secrets in a text of a run, each with a little of what stands around it."""
    # Thousands of times are in a run: some day one of them holds the digits of a secret.
    text = re.sub(r'_ns":\d+', '_ns":0', text)
    places = (match.start() for match in _SECRET.finditer(text))
    return [text[max(0, at - 60) : at + 40] for at in places]


def write(folder: Path) -> Path:
    """The programs in a folder whose name is a secret too, with a blank; that folder."""
    project = folder / "home qzxuser" / "qzxproject"
    for name, text in {
        SCRIPT: _MAIN,
        "qzxinductor.py": _INDUCTOR,
        SUITE: _SUITE,
        "qzxhelpers/__init__.py": "",
        "qzxhelpers/qzxlayers.py": _LAYERS,
        "lib/python3.11/site-packages/qzxwheel/__init__.py": _WHEEL,
    }.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).replace("\\\\", "\\"))
    return project
