"""Allocating devices to claims, as data: no plugin, no cache, no clock lives here.

`allocation` answers one question: which devices of the slices that a node can reach satisfy these claims? The
DynamicResources plugin asks it for every node. Read `pools` (what a node can reach), `requests` (what is wanted),
`constraints`, `counters` and `capacity` (what forbids a combination), `allocation` (the search), `results` (what is
written). The `cel_*` modules evaluate selectors: `cel_tree` reads compiled expressions, `cel_functions` are Kubernetes'
own functions, `selectors` is what the search uses; they need the `cel` extra.
"""
