"""What a user configures: `KubeSchedulerConfiguration` v1, read strictly, filled with defaults, resolved to plugins.

What lives here: the structs, the strict reader, the checks, the expansion of `multiPoint` into extension points. What
never may: a plugin's code (a table says which points a plugin extends), a file (the shell reads it). Read in order:

    types.py       the structs, wire names and defaults
    problems.py    every fault with its field path, collected, then raised as one ConfigError
    decode.py      YAML or JSON to structs; unknown fields and wrong types by path
    durations.py   Go durations (`1m30s`)
    validation.py  ranges, duplicates, what excludes what
    arguments.py   the plugins' own arguments: decoding and checks
    defaults.py    the default plugins and the points each extends
    resolve.py     precedence: which plugins run where, in which order, with which weight
"""
