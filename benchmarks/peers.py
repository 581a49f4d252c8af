"""compilescope beside the tools that PyTorch's users have, on the same programs.

    python benchmarks/peers.py                          # all questions to all tools; an hour
    python benchmarks/peers.py --keep answers/          # keeps the answers, asks what is new
    python benchmarks/peers.py --program four_breaks --tool explain --tool compilescope
    python benchmarks/peers.py --question watch --rounds 3

Each program of `peers/programs` has its truth in `peers/truths.py`, each tool a file in
`peers/tools`, each job a rule in `peers/scoring.py`, the same for all tools. Every question is a
process of its own, in a folder of its own, with a limit; the tools are used as their documentation
says. What they said is kept below `--keep`, a folder a tool and program: `stdout.txt`, `stderr.txt`
and what the tool wrote. A job that a tool does not do is a dash, not a zero.

torch brings explain, TORCH_LOGS, the minifier and CompilerBisector. For the others:
pip install tlparse depyf polygraphy onnx onnxruntime onnxscript. What is missing is left out, and
said.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peers.asking import ORDER, QUESTIONS, Answers, Row, every_tool, rows_of
from peers.tables import (
    absent_table,
    cost_table,
    fix_table,
    program_table,
    repro_table,
    score_table,
)
from peers.tool import Tool
from peers.truths import TRUTHS


def main() -> None:
    options = parsed()
    tools = every_tool()
    chosen = [tools[name] for name in options.tool or tools]
    there = [tool for tool in chosen if not tool.not_run and not tool.missing()]
    programs = [p for p in TRUTHS if not options.program or p.name in options.program]
    folder = options.keep or Path(tempfile.mkdtemp(prefix="peers-"))
    answers = Answers(folder.resolve(), options.rounds)
    questions = options.question or list(QUESTIONS)
    rows = rows_of(there, programs, questions, answers, ask=not options.kept)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print("\n\n".join(tables(rows, chosen)))
    print(f"\nWhat every tool said: {folder}", file=sys.stderr)


def tables(rows: list[Row], tools: list[Tool]) -> list[str]:
    """Markdown; empty tables are left out."""
    return [
        table
        for table in (
            score_table(rows, tools, "watch"),
            program_table(rows, tools, "lines"),
            score_table(rows, tools, "localise"),
            repro_table(rows),
            fix_table(rows),
            cost_table(rows),
            absent_table(tools),
        )
        if table
    ]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tool", action="append", choices=ORDER)
    parser.add_argument("--program", action="append", choices=[p.name for p in TRUTHS])
    parser.add_argument("--question", action="append", choices=list(QUESTIONS))
    parser.add_argument(
        "--rounds", type=int, default=1, help="runs of each, in turn, for CPU times"
    )
    parser.add_argument("--keep", type=Path, help="a folder for all answers; those there are taken")
    parser.add_argument("--kept", action="store_true", help="ask nothing: what `--keep` has")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
