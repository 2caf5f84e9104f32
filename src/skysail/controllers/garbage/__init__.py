"""Garbage collection: what is owned by nothing that exists goes.

Read `node.py` (an object as the collector sees it), `graph.py` (who owns whom, fed by metadata of every kind),
`decision.py` (what becomes of one object), then `loop.py`, which asks the server and acts.

An owner reference is *solid* when its owner exists, *dangling* when it does not, and *waiting* when the owner is being
deleted in the foreground and waits for its dependents. An object goes when no solid reference is left.
"""
