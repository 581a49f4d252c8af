"""A subject: one finding that a fix is sought for, with the program around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import msgspec

from compilescope.change.fixes.values.graph_values import ValueFact, ValueFacts, seen_at
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.source.refusals import NotTried, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import SourceSeen
from compilescope.record.plain_files import LARGEST_SOURCE, read_source
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, cell_of, origin_of

_ALWAYS_PARSED = 4
"""Files that may be parsed whatever the limit. Chosen: the one with the cause, the script, and what
they call; without these no fix can say anything."""
_LARGEST_ALWAYS = 250_000
"""Letters of those files together. Chosen: a bound for the time that parsing takes."""
OF_A_FILE = 5_000
"""Letters: what is done in each file, however small, takes as long as to parse so many. Chosen;
rough."""


@dataclass(frozen=True)
class Program:
    """One version of the user's program: its files as they are now, and what a run of it showed."""

    run: Run
    digest: Digest
    main: str
    """The absolute path of the script, or of the module that `-m` runs; empty for `-c`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts that differ from those on disk, by absolute path."""
    facts: ValueFacts = field(default_factory=ValueFacts)
    on_this_machine: bool = True
    """May what `files` lacks be read from disk? Paths of another machine mean nothing here."""
    most_source: int | None = None
    """Letters of source after which no other file is parsed: a report must not take minutes.
    None: no limit."""
    largest_file: int | None = None
    """Letters of a file that may be parsed at all. None: no limit."""
    most_callers: int | None = None
    """Files that may lead to a cause whose callers are looked at. None: no limit."""
    _modules: dict[str, SourceModule] = field(default_factory=dict, repr=False)
    _own: list[tuple[str, ...]] = field(default_factory=list, repr=False)
    _stops: list[str] = field(default_factory=list, repr=False)

    @property
    def stops(self) -> int:
        """How often a limit kept a fix from looking; fixes may pass over the exception."""
        return len(self._stops)

    def stop(self, reason: str) -> NoReturn:
        """Raises `NotTried`: a limit keeps a fix from looking."""
        self._stops.append(reason)
        raise NotTried(reason)

    def check_callers(self, files: Iterable[str]) -> None:
        """Raises `NotTried` where a cause comes from more files than a report can look at."""
        if self.most_callers is not None and sum(map(self.is_own, set(files))) > self.most_callers:
            self.stop("too many files lead to it")

    @property
    def own(self) -> tuple[str, ...] | None:
        """The user's own files, with what they import; None until they were sought."""
        return self._own[0] if self._own else None

    @property
    def _has_parsed_enough(self) -> bool:
        if self.most_source is None:
            return False
        letters = sum(len(module.text) + OF_A_FILE for module in self._modules.values())
        few = len(self._modules) < _ALWAYS_PARSED
        return letters > (max(self.most_source, _LARGEST_ALWAYS) if few else self.most_source)

    @cached_property
    def own_files(self) -> tuple[str, ...]:
        """The script and the user's files that the run recorded: thousands in a large code base,
        and many fixes ask."""
        seen = [self.main, *(body.file for _, body in self.run.of(SourceSeen))]
        return tuple(dict.fromkeys(file for file in seen if file and self.is_own(file)))

    @cached_property
    def has_too_much_source(self) -> bool:
        """More than may be parsed in those files alone."""
        if self.most_source is None:
            return False
        left = self.most_source
        for file in self.own_files:
            with suppress(Refused):
                left -= len(self.text(file)) + OF_A_FILE
            if left < 0:
                return True
        return False

    def keep_own(self, files: tuple[str, ...]) -> None:
        self._own.append(files)

    @property
    def has_source(self) -> bool:
        return self.on_this_machine or bool(self.files)

    def text(self, file: str) -> str:
        """Raises `Refused` where there is no text to change."""
        if file in self.files:
            return self.files[file]
        path = Path(file)
        if not self.on_this_machine:
            raise Refused(f"the source of {path.name} is not available")
        try:
            if path.stat().st_size > LARGEST_SOURCE:
                raise Refused(f"{path.name} is too large to rewrite")
            return read_source(file).decode("utf-8-sig")
        except (OSError, ValueError):
            raise Refused(f"the source of {file} cannot be read") from None

    def module(self, file: str) -> SourceModule:
        """Parsed once. Raises `Refused` where it cannot be, `NotTried` where no more may be."""
        if file not in self._modules:
            if self._has_parsed_enough:
                self.stop("enough other source was parsed")
            text = self.text(file)
            if self.largest_file is not None and len(text) > self.largest_file:
                self.stop("the file is too large for a run of this size")
            self._modules[file] = SourceModule(file, text)
        return self._modules[file]

    def is_own(self, file: str) -> bool:
        """The user's own, which `--write` or its author may change: no installed package. A cell
        of a notebook, or what came from standard input, is no file and still its author's."""
        if cell_of(file) is not None or file == "<stdin>":
            return True
        return origin_of(file) == "user" and not file.startswith("<")

    @property
    def root(self) -> str:
        return self.run.header.root


@dataclass(frozen=True)
class Subject:
    """A finding that a fix is sought for, and the program around it."""

    finding: Finding
    program: Program
    led_by: RecompileFinding | None = None
    """The guard that explains this one, where a fix is about another than that."""

    @property
    def file(self) -> str:
        return self.finding.file

    @property
    def line(self) -> int:
        return self.finding.line

    @property
    def watched(self) -> set[tuple[str, int]]:
        """Lines whose functions a survey is to look at: its own, and where a number is read, those
        that called it, which may be given the number."""
        found = {(self.file, self.line)}
        if "category/scalar-extraction" in self.keys:
            for event in self.program.run.events_with(self.finding.because):
                own = (frame for frame in event.stack if self.program.is_own(frame.file))
                found |= {(each.file, each.line) for each in own if each.function != "<module>"}
        return found

    def at(self, module: SourceModule, node: cst.CSTNode) -> Subject:
        """The same finding, looked at from another place: that of a caller."""
        moved = msgspec.structs.replace(
            self.finding,
            file=module.path,
            line=module.line(node),
            column=None,
            end_column=None,
            end_line=None,
        )
        return replace(self, finding=moved)

    @property
    def rule(self) -> str:
        """`print-call`, `recompile/size-change`; empty where no rule explains it."""
        return _rule_of(self.finding)

    @property
    def keys(self) -> frozenset[str]:
        """What a fix may name it by: `print-call`, `GB0124`, `category/logging`,
        `recompile/size-change`, `recompile`; of a recompile by any of the guards that failed."""
        found = _keys_of(self.finding)
        if isinstance(self.finding, RecompileFinding):
            found = found.union(*map(_keys_of, self.finding.together))
        return found

    def meant_for(self, rules: frozenset[str]) -> Subject:
        """The same cause by the guard that these rules are about: the one that explains the others
        if it is one of theirs, else the first that failed with it."""
        led = self.finding
        if not isinstance(led, RecompileFinding) or rules & _keys_of(led):
            return self
        other = next((each for each in led.together if rules & _keys_of(each)), None)
        if other is None:
            return self
        same = {name: getattr(led, name) for name in ("fingerprint", "because", "count", "seconds")}
        return replace(self, finding=msgspec.structs.replace(other, **same), led_by=led)

    @property
    def recompile(self) -> RecompileFinding | None:
        """The guard that failed; None of another kind, and where torch named none."""
        finding = self.finding
        return finding if isinstance(finding, RecompileFinding) and finding.is_named else None

    @property
    def frame(self) -> CodeRef | None:
        """The function that was compiled again because of it."""
        return self.recompile.compiled if self.recompile is not None else None

    @cached_property
    def guards(self) -> tuple[RecompileFinding, ...]:
        """All that failed in the function that was compiled again."""
        if self.recompile is None or not self.finding.because:
            return ()
        first = self.finding.because[0]
        frames = self.program.digest.recompiles
        return next((frame.guards for frame in frames if first in frame.because), ())

    @cached_property
    def module(self) -> SourceModule:
        """The file that it is in. Raises `Refused` if it cannot be read or parsed."""
        return self.program.module(self.file)

    @cached_property
    def node(self) -> cst.CSTNode:
        """The expression that Dynamo stopped at; where columns are not known, the statement.
        Raises `Refused` if nothing is there."""
        finding = self.finding
        found = self.module.node_at(finding.line, finding.column, finding.end_column)
        if found is None:
            raise Refused("there is no source at the line Dynamo reports")
        return found

    @cached_property
    def statement(self) -> cst.BaseStatement:
        """The statement around `node`: a line of simple ones, or a compound one."""
        return self.module.statement_of(self.node)

    @cached_property
    def function(self) -> cst.FunctionDef:
        """The function around it. Raises `Refused` at module level and in a lambda's body."""
        found = self.module.function_of(self.node)
        if found is None:
            raise Refused("it is not inside a function")
        return found

    def facts(self, name: str, line: int | None = None) -> tuple[ValueFact, ...]:
        """Values that `name` was seen to hold when the line was about to run."""
        line = self.line if line is None else line
        if self.program.facts.reached(self.file, line):
            return self.program.facts.at(self.file, line, name)
        # Nobody has watched the line: what its compilations were made for tells some of it.
        seen = seen_at(self.program.run, self.module, line, name)
        return self.program.facts.as_held(self.file, name, seen)

    def is_tensor(self, name: str, line: int | None = None) -> bool | None:
        """None: the line was not seen, or the name not there."""
        seen = self.facts(name, line)
        if not seen:
            return None
        return all(fact.kind in ("tensor", "parameter") for fact in seen)


def _rule_of(finding: Finding) -> str:
    if isinstance(finding, RecompileFinding):
        return finding.rule_id if finding.is_named else ""
    return finding.rule or ""


def _keys_of(finding: Finding) -> frozenset[str]:
    found = {_rule_of(finding)}
    match finding:
        case RecompileFinding(is_named=True, guard_kind=kind):
            found |= {"recompile", f"recompile/{kind}"}
        case FailureFinding(gb_type=None):
            found.add("failure")
        # A break that fullgraph=True made an error is mended as any other.
        case (
            BreakFinding(gb_id=gb_id, category=category)
            | FailureFinding(gb_id=gb_id, category=category, gb_type=str())
        ):
            found |= {gb_id or "", f"category/{category}", finding.kind}
    return frozenset(found - {"", "category/"})


def subjects_of(program: Program) -> list[Subject]:
    """One for each cause, ranked as the digest ranks them. What an earlier break only left behind
    goes with that one, so it is none of its own."""
    return [
        Subject(finding, program)
        for finding in findings(program.digest)
        if finding.kind != "eager"
        and not (isinstance(finding, BreakFinding) and finding.consequence_of is not None)
    ]
