"""Controller revisions: how stateful and daemon sets remember their templates.

Read `revisions.py` (which is which, pure), then `store.py`, which makes, renumbers, adopts and deletes them.
"""
