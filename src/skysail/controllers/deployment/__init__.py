"""Deployment: rolls replica sets over from template to template.

Read `fences.py` (how far a step may go), `scaling.py` (a change of size), `revisions.py` (which set is which),
`status.py` (what is reported), then `plan.py`, where the decisions are made over a `draft.py`; `loop.py` carries the
plan out.
"""
