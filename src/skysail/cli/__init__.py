"""The `skysail` command: one module a verb, each a thin shell that reads options, wires rooms together and prints.

Wiring happens here and nowhere else: real clocks, real dice, signals, files and terminals. Verb modules import their
rooms inside the command, so that `skysail --help` stays quick. Start at `main`, then `up`.
"""
