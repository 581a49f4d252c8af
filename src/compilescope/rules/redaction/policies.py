"""How each field of the record is redacted. A field that is not listed is taken for code.

A test holds this table against the record: a new field of text must find its place here.
"""

from __future__ import annotations

from typing import Literal

Policy = Literal[
    "keep",  # Not the user's: kinds, ids, versions, our own words.
    "code",  # Expressions and names.
    "guard",  # As code, with our own words and torch's about guards.
    "title",  # The type of a break.
    "sentences",
    "context",  # PyTorch's debug context.
    "message",  # Of an exception.
    "reason",  # Why a cache entry did not fit, with the user's line as a comment.
    "generated",  # Names and code of graphs and kernels.
    "path",
    "argument",  # Of a command line.
    "test",  # A pytest node.
    "key",  # A hash of the user's code.
    "version",  # A local build may be named for who made it.
    "dropped",  # Nobody knows what it holds.
    "artifact-generated",
    "artifact-source",
    "artifact-guards",
    "artifact-graph",
    "artifact-origins",
    "artifact-kernels",
]

POLICIES: dict[str, dict[str, Policy]] = {
    "Event": {"id": "keep", "compile_id": "keep", "test": "test"},
    "GraphBreak": {
        "gb_type": "title",
        "gb_id": "keep",
        "explanation": "sentences",
        "hints": "sentences",
        "context": "context",
        "wrappers": "title",
        "outcome": "keep",
        "error": "code",
        "values": "code",
    },
    "ValueFact": {
        "kind": "keep",
        "type": "code",
        "dtype": "keep",
        "device": "keep",
        "value": "dropped",
    },
    "GraphCaptured": {
        "stage": "keep",
        "text": "artifact-generated",
        "graph": "artifact-graph",
        "origins": "artifact-origins",
        "backend": "code",
        "reason": "sentences",
    },
    "GuardSet": {"kinds": "keep", "artifact": "artifact-guards"},
    "Guard": {"source": "code", "kind": "keep", "checks": "guard"},
    "FailedGuard": {
        "guard": "guard",
        "subject": "guard",
        "expected": "guard",
        "actual": "guard",
        "kind": "keep",
    },
    "CacheEntryMiss": {"compile_id": "keep", "reason": "reason"},
    "Recompile": {"refused": "keep"},
    "FrameSkipped": {
        "cause": "keep",
        "reason": "title",
        "gb_type": "title",
        "gb_id": "keep",
        "because": "keep",
    },
    "CompileFailed": {
        "error": "code",
        "message": "message",
        "phase": "keep",
        "gb_type": "title",
        "gb_id": "keep",
        "hints": "sentences",
        "backend": "code",
        "cause": "message",
        "link": "keep",
    },
    "ProcessEnded": {"error": "code", "message": "message", "accelerator": "keep"},
    "CompileTime": {"phases_us": "keep", "phase": "keep", "restarts": "sentences"},
    "Phase": {"name": "keep", "compile_id": "keep", "detail": "generated"},
    "GraphTime": {"graph": "keep", "captured": "keep"},
    "CacheAccess": {"cache": "keep", "outcome": "keep", "key": "key", "reason": "sentences"},
    "KernelEmitted": {
        "artifact": "artifact-generated",
        "file": "path",
        "kernels": "generated",
        "origins": "artifact-kernels",
        "direction": "keep",
    },
    "CudagraphSkip": {"reason": "sentences"},
    "Violation": {
        "rule": "keep",
        "device": "code",
        "op": "generated",
        "found": "sentences",
        "allowed": "sentences",
        "severity": "keep",
        "remedy": "sentences",
        "stage": "keep",
        "model": "code",
        "node": "generated",
    },
    "TensorDiff": {
        "path": "code",
        "verdict": "keep",
        "reason": "sentences",
        "model": "code",
        "reference": "code",
        "test": "code",
        "metrics": "keep",
        "guilty": "generated",
        "role": "keep",
        "dtype": "keep",
    },
    "ReproWritten": {"because": "keep", "path": "path", "reason": "sentences"},
    "FixAttempt": {
        "fix": "keep",
        "title": "keep",
        "verdict": "keep",
        "because": "keep",
        "cause": "title",
        "reason": "sentences",
        "states": "sentences",
        "diff": "dropped",
    },
    "ErrorGrid": {"lines": "keep"},
    "WorstValue": {"reference": "code", "test": "code", "error": "keep"},
    "Measurement": {"name": "keep", "subject": "code", "variant": "code", "how": "sentences"},
    "SourceSeen": {"file": "path", "artifact": "artifact-source"},
    "CompiledFunction": {"file": "path", "function": "code"},
    "CompiledBefore": {},
    "StanceChanged": {"stance": "keep"},
    "HookUnavailable": {"hook": "keep", "target": "keep", "loses": "keep"},
    "ToolFault": {"where": "keep", "error": "message", "traceback": "message"},
    "ProcessStarted": {"argv": "argument", "python": "keep", "torch": "version", "device": "code"},
    "LogRead": {
        "source": "path",
        "samples": "message",
        "formats": "keep",
        "flags": "keep",
        "build": "version",
        "interleaved": "keep",
        "problems": "message",
    },
    "ModuleStage": {"name": "keep", "kinds": "keep"},
    "OpPlace": {"modules": "code"},
    "GraphCompiled": {
        "system": "keep",
        "name": "generated",
        "hash": "key",
        "cause": "sentences",
        "after": "keep",
        "backend": "code",
        "error": "message",
        "failed_stage": "keep",
        "cut": "keep",
    },
    "GraphDumped": {"form": "keep", "name": "generated", "hashes": "key", "kinds": "keep"},
    "GraphExecuted": {"hash": "key", "cause": "sentences"},
    "BreakEcho": {
        "gb_type": "title",
        "gb_id": "keep",
        "explanation": "sentences",
        "context": "context",
        "because": "keep",
    },
    "FallbackOps": {"ops": "generated", "told_by": "keep"},
    "LogLine": {"system": "keep", "level": "keep", "text": "message"},
    "SymbolicShape": {
        "action": "keep",
        "symbol": "generated",
        "expression": "generated",
        "value": "generated",
        "sources": "code",
        "reason": "sentences",
    },
    "TraceRecords": {"kinds": "generated", "artifact": "dropped"},
    "RunHeader": {
        "run": "key",
        "tool": "keep",
        "command": "argument",
        "cwd": "path",
        "root": "path",
        "host": "key",
    },
    "Node": {
        "name": "generated",
        "op": "keep",
        "target": "generated",
        "inputs": "generated",
        "source": "code",
        "alias": "generated",
        "arguments": "generated",
    },
    "Call": {"op": "generated", "constants": "generated"},
    "TensorInfo": {"shape": "generated", "dtype": "code", "stride": "generated", "device": "code"},
    "Origins": {"nodes": "generated", "gradients": "generated"},
    "KernelCall": {"kernel": "generated", "nodes": "generated"},
}
