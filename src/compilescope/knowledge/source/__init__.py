"""The user's source: what stands at a place, what it means, and how it is changed.

There are three ways to read Python, each for one purpose:

- `ast`, which needs nothing else and is fast, says what stands at a line and column: `spots`.
- LibCST keeps every space and comment, so what is to be written again is read and changed as its
  tree: `syntax` (one file, its names, its edits) and `flow` (what the code does with values). It
  takes long to import: see `trees`.
- `tokenize` gives a file's encoding, and counts or skims tokens where no tree is needed.

`syntax.edit.Edit` gathers changes to one file and writes it once. The source minifier has its own
edits (`minify.source.edits`): functions from a node to what takes its place, which add up where
they lie within one another, as passes that try them alone and together need. Where a change cannot
be made the reason is raised (`refusals`); nothing here imports findings or fixes.
"""
