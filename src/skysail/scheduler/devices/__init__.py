"""Allocating devices to claims, as data: no plugin, no cache, no clock lives here.

`allocation` answers one question: which devices of the slices that a node can reach satisfy these claims? The
DynamicResources plugin asks it for every node. Read `pools` (what a node can reach), `requests` (what is wanted),
`constraints`, `counters` and `capacity` (what forbids a combination), `taken` (what others have), `allocation` (the
search), `results` (what is written). `selectors` asks CEL, which lives in `cel`.
"""
