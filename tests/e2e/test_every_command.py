"""One session with every command of kubectl, by each kubectl that is supported."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.running import kubectl_of, start, stop

FOLDER = Path(__file__).parent


@dataclass
class Command:
    """One line of the transcript, and what is expected of it."""

    line: int
    text: str
    fails: bool
    present: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


def read_transcript(file: Path) -> Iterator[Command]:
    command = None
    for number, text in enumerate(file.read_text().splitlines(), start=1):
        mark, _, rest = text.partition(" ")
        if mark in ("$", "!"):
            if command is not None:
                yield command
            command = Command(number, rest, mark == "!")
        elif mark in (">", "<"):
            assert command is not None
            (command.present if mark == ">" else command.absent).append(rest)
        else:
            assert mark in ("#", ""), f"line {number}: {text}"
    if command is not None:
        yield command


def fault(command: Command, code: int, printed: str) -> str:
    """What is wrong with how a command ended; empty when nothing is."""
    wrong = [f"exit code {code}"] if (code != 0) != command.fails else []
    wrong += [f"does not print {text!r}" for text in command.present if text not in printed]
    wrong += [f"prints {text!r}" for text in command.absent if text in printed]
    return f"line {command.line}: kubectl {command.text}: {'; '.join(wrong)}\n{printed}" if wrong else ""


@pytest.mark.kubectl
@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_every_command_answers_as_expected(version: str, tmp_path: Path) -> None:
    running = start(tmp_path, "--nodes", "3")
    faults = []
    try:
        for command in read_transcript(FOLDER / "commands.txt"):
            done = running.kubectl_process(
                *shlex.split(command.text), timeout=90, cwd=FOLDER / "manifests", binary=kubectl_of(version)
            )
            if wrong := fault(command, done.returncode, done.stdout + done.stderr):
                faults.append(wrong)
    finally:
        stop(running)
    assert not faults, "\n".join(faults)
