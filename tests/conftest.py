"""How Hypothesis runs: `make test` with its profile `ci`, the same examples each time; `make soak` draws new ones."""

from hypothesis import settings

settings.register_profile("soak", deadline=None, database=None, print_blob=True)
