"""A scenario of `tests/batch/scenarios`, played through `skysail batch replay`, and questions about what it printed."""

import json
from pathlib import Path

from typer.testing import CliRunner

from skysail.cli.main import app

SCENARIOS = Path(__file__).parents[1] / "scenarios"


class Played:
    """What a replay printed, and questions about it."""

    def __init__(self, name, seed=1):
        (file,) = SCENARIOS.glob(f"{name}*.yaml")
        found = CliRunner().invoke(app, ["batch", "replay", str(file), "--seed", str(seed), "--output", "json"])
        if found.exception is not None:
            raise found.exception
        *self.cycles, last = [json.loads(line) for line in found.stdout.splitlines()]
        self.final = last["final"]
        assert self.final["ledger_equals_rebuild"]
        assert not any("faults" in line or "problems" in line for line in self.cycles)

    def binds(self, match=""):
        return [(line["at"], each["pod"], each["node"]) for line in self.cycles for each in line["binds"]
                if each["pod"].startswith(f"default/{match}")]  # fmt: skip

    def evictions(self, match=""):
        return [(line["at"], each["pod"], each["for"]) for line in self.cycles for each in line["evictions"]
                if each["pod"].startswith(f"default/{match}")]  # fmt: skip

    def codes(self, at):
        """Who waits and why, at that time."""
        line = [line for line in self.cycles if line["at"] <= at][-1]
        return {name.removeprefix("default/"): each["code"] for name, each in line["outcomes"].items()}

    def numbers(self, at, unit):
        return [line for line in self.cycles if line["at"] <= at][-1]["outcomes"][f"default/{unit}"]["numbers"]

    def held(self, queue, resource="cpu"):
        return self.final["queues"][queue]["held"].get(resource, 0)

    def writes(self, after):
        return sum(line["writes"] for line in self.cycles if line["at"] > after)
