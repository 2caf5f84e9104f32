"""`skysail batch replay`: the production engine on virtual time, against the embedded server, as a file tells.

How a user reports a fault of the batch engine, and how it is tested. Lives here: `scenario` (the file, checked),
`acts` (what may happen) and `reading` (how a step says it), `kinds` (what may be spoken of), `doing` (what happens to
the cluster), `network` (what the engine's connection can suffer beside faults of single calls), `report` (the lines),
`player`.
It needs a cluster whose every part can fail, and so belongs to the test kit.
"""
