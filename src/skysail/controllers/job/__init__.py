"""Job: runs pods until enough have succeeded, or too many have failed.

Read `indexes.py` (sets of completion indexes), `policies.py` (what a failure or a success means), `backoff.py` (how
long to wait after failures), then `view.py` (the facts of one pass), `plan.py` (what to make, delete and conclude) and
`tracking.py` (how finished pods are counted exactly once); `loop.py` carries it out.
"""
