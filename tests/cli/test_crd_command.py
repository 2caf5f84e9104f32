"""`skysail crd gen` prints what a server accepts, and says in one line what it cannot print."""

import json
import subprocess
import sys
from pathlib import Path

import yaml
from examples.controllers.label_defaults import LabelDefaults

from skysail.controller.customresources import definition_of

ROOT = Path(__file__).parents[2]
SKYSAIL = Path(sys.executable).with_name("skysail")
CLASS = "examples.controllers.label_defaults:LabelDefaults"


def crd_gen(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SKYSAIL), "crd", "gen", *args], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def test_yaml_and_json_say_the_same_as_the_function() -> None:
    wanted = definition_of(LabelDefaults)
    assert yaml.safe_load(crd_gen(CLASS).stdout) == wanted
    assert json.loads(crd_gen(CLASS, "-o", "json").stdout) == wanted


def test_several_classes_become_several_documents_or_a_list() -> None:
    assert len(list(yaml.safe_load_all(crd_gen(CLASS, CLASS).stdout))) == 2
    listed = json.loads(crd_gen(CLASS, CLASS, "-o", "json").stdout)
    assert (listed["kind"], len(listed["items"])) == ("List", 2)


def test_what_cannot_be_generated_ends_in_one_line() -> None:
    for wrong, why in (
        ("nonsense", "module:Class is wanted"),
        ("no.such.module:Class", "cannot import no.such.module"),
        ("examples.controllers.label_defaults:Nope", "has no class Nope"),
        ("examples.controllers.label_defaults:LabelDefaulter", "derives from ApiObject"),
        ("skysail.api.core:Pod", "Pod needs a class variable"),
    ):
        done = crd_gen(wrong)
        assert (done.returncode, done.stdout) == (2, "")
        [line] = done.stderr.splitlines()
        assert line.startswith("skysail: ")
        assert why in line
