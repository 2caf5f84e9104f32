"""Controllers beside the engine: gangs made of pods' owners, and the statuses of queues, lines, slots and gangs.

Lives here: `owners` (which gang a pod belongs to, by its owners alone), `grouping` (what that gang's object must say),
`standing` (what statuses must say, of the engine's world); all pure. `loop` is the shell. Never here: decisions about
who runs.

A pod without an owner and without a word about a gang is a gang of one, and has no object: its own condition says why
it waits. Slots that nobody asked for by a Quota are the engine's own, made and released with their task, and have no
object either.

Read in this order: `owners`, `grouping`, `loop`; `standing`.
"""
