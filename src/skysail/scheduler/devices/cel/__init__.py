"""Kubernetes' CEL on top of the CEL library: its types, its functions, what expressions cost.

Needs the `cel` extra; without it only `environment.CelMissing` comes out of here. Read `environment` first (how an
expression is checked, rewritten and run), then `values` (what travels through the library as bytes), `functions` and
`formats` (what Kubernetes adds), `tree` (the compiled expression as data), `cost`, `call_costs` and `ranges` (the most
an expression may cost).

>>> from skysail.scheduler.devices.cel.environment import compile_expression
>>> compile_expression("quantity('1Gi') == quantity('1024Mi')").run({})
True
"""
