"""Benchmarks that print figures and ratios, never verdicts. `python -m bench [NAME...]` runs all, or the named ones."""
