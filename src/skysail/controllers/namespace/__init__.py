"""Namespace life cycle: a namespace that is deleted is emptied, pods first, and then let go.

Read `plan.py` (what is reported and for how long to wait), then `loop.py`.
"""
