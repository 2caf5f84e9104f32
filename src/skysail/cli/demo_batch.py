"""`skysail demo batch`: the batch engine's examples played in virtual time, and told in words."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from skysail.api.raw import Raw
    from skysail.simulator.clock import LoopClock
    from skysail.testing.batch_replay.scenario import Scenario


def example_folders() -> list[Path]:
    """The batch examples: inside an installed package, or beside the sources.

    Raises:
        ConfigError: They are in neither place.
    """
    from skysail.api.errors import ConfigError

    package = Path(str(files("skysail")))
    for folder in (package / "examples" / "batch", package.parents[1] / "examples" / "batch"):
        if found := sorted(each.parent for each in folder.glob("*/scenario.yaml")):
            return found
    raise ConfigError("the batch examples are missing from this installation", file="examples/batch")


def demo_batch(seed: int | None, output: str) -> bool:
    """Play all examples; whether each ended with a true ledger.

    Args:
        seed: Of names and ties; the scenarios' own when None.
        output: `table` tells in words, `json` prints each scenario's final line.
    """
    import msgspec

    from skysail.cli.output import say
    from skysail.simulator.clock import run_virtual
    from skysail.testing.batch_replay.scenario import read_scenario

    right = True
    for folder in example_folders():
        scenario = read_scenario(folder / "scenario.yaml")
        teller = Teller()
        if output != "json":
            say(f"{folder.name}: {scenario.name}")
        run_virtual(_playing(scenario, scenario.seed if seed is None else seed, teller))
        right = right and bool(teller.final.get("ledger_equals_rebuild"))
        if output == "json":
            say(msgspec.json.encode({"scenario": folder.name} | teller.final).decode())
        else:
            say("\n".join([*teller.lines, ""]))
    return right


def _playing(
    scenario: "Scenario", seed: int, teller: "Teller"
) -> "Callable[[LoopClock], Coroutine[object, object, None]]":
    from skysail.testing.batch_replay.player import play

    return lambda clock: play(scenario, clock, seed, teller.hear)


class Teller:
    """Makes words of a replay's lines.

    Attributes:
        lines: What happened, a line a moment.
        final: The final line's content.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.final: Raw = {}
        self._waiting: dict[str, str] = {}

    def hear(self, line: "Raw") -> None:
        """One line."""
        if "final" in line:
            self.final = line["final"]
            pods = ", ".join(f"{count} {phase.lower()}" for phase, count in self.final["pods"].items())
            self.lines.append(f"    end    {pods}")
            return
        at = f"{line['at']:7.2f} s"
        for eviction in _counted(line["evictions"], "for"):
            self.lines.append(f"  {at}  evicts {eviction}")
        if line["binds"]:
            nodes = sorted({each["node"] for each in line["binds"]})
            self.lines.append(f"  {at}  binds {len(line['binds'])} pods to {', '.join(nodes)}")
        waiting = {unit: _why(unit, found) for unit, found in line["outcomes"].items()}
        for unit, words in waiting.items():
            if self._waiting.get(unit) != words:
                self.lines.append(f"  {at}  {words}")
        self._waiting = waiting


def _why(unit: str, found: "Raw") -> str:
    from skysail.batch.model.resources import amount_text

    numbers = dict(found["numbers"])
    for name in ("ask", "used", "limit"):
        if isinstance(numbers.get(name), int) and "resource" in numbers:
            numbers[name] = amount_text(numbers["resource"], numbers[name])
    figures = ", ".join(f"{name} {value}" for name, value in numbers.items())
    return f"{unit} waits: {found['code']}" + (f" ({figures})" if figures else "")


def _counted(evictions: "list[Raw]", field: str) -> list[str]:
    counts: dict[str, int] = {}
    for each in evictions:
        counts[each[field]] = counts.get(each[field], 0) + 1
    return [f"{count} pods for {name}" for name, count in counts.items()]
