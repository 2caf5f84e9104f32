"""Why does it wait, what would help, what if: answers about a snapshot. Pure; nothing is written, nobody is asked.

Lives here: `snapshot` (what is looked at, and the engine's world made of it), `jobs` (`why_job`), `advice` (what would
help), `unknown` (why there is no such job), `what_if` (`simulate`). Never here: I/O, and a second idea of how the
engine decides: both answers run the production code on a copy.

Read in this order: `snapshot`, `jobs`, `advice`, `what_if`.
"""
