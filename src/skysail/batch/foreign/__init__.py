"""Other systems' queues and gangs, read unchanged, and written back to where their users look for an answer.

Lives here: one module for each system (`volcano`, `kueue`, `kai`, `elastic`, `coscheduling`, `upstream`), the words
that pods use (`pods`), and `registry`, the table of kinds. Each is a pure conversion to the records of
`skysail.batch.model.specs`; where a status is owed there is a function from our status to theirs. Never here: I/O, and
semantics that the records cannot say: what is given up is said in the docstring and, for an object that asks for it, as
a `Problem`.

Read in this order: `decoding`, any of the systems, `registry`.
"""
