"""Node life cycle: nodes that fall silent are marked, and in the end emptied; slowly, and not when all fall silent.

Read `health.py` (is a node alive), `zones.py` (how much of a zone is down, and what that means), `taints.py` and
`marking.py` (marks), `tainting.py` (how fast nodes are marked), then `loop.py`. Pods leave by
`skysail.controllers.tainteviction`.
"""
