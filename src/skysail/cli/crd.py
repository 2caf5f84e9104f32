"""`skysail crd gen`: the CustomResourceDefinition of a Struct, to be applied."""

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from skysail.cli.output import say

if TYPE_CHECKING:
    from skysail.api.meta import ApiObject

app = typer.Typer(name="crd", help="Custom resources from Python classes.", no_args_is_help=True)


class Format(StrEnum):
    """How manifests are written."""

    YAML = "yaml"
    JSON = "json"


@app.callback()
def crd() -> None:
    """Custom resources from Python classes."""


@app.command("gen")
def gen(
    classes: list[str] = typer.Argument(..., metavar="MODULE:CLASS...", help="Structs that say where they live."),
    output: Format = typer.Option(Format.YAML, "--output", "-o", help="The manifests' format."),
) -> None:
    """Print the CustomResourceDefinitions of annotated Structs.

    Schema, printer columns and subresources come from the class. Apply them with

        skysail crd gen module:Class | kubectl apply -f -
    """
    import json

    import yaml

    from skysail.controller.customresources import definition_of

    manifests = [definition_of(load_struct(text)) for text in classes]
    if output is Format.JSON:
        whole = manifests[0] if len(manifests) == 1 else {"apiVersion": "v1", "kind": "List", "items": manifests}
        say(json.dumps(whole, indent=2))
    else:
        say(yaml.safe_dump_all(manifests, sort_keys=False, explicit_start=len(manifests) > 1).rstrip("\n"))


def load_struct(text: str) -> "type[ApiObject]":
    """Import `module:Class`; modules of the working directory count.

    Raises:
        ConfigError: There is no such class, or it is no kind of object.
    """
    from skysail.api.errors import ConfigError
    from skysail.api.meta import ApiObject
    from skysail.cli.working_directory import search_working_directory

    module_name, colon, name = text.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{text!r}: module:Class is wanted")
    search_working_directory()
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{text!r}: cannot import {module_name}: {error}") from error
    found = getattr(module, name, None)
    if not isinstance(found, type) or not issubclass(found, ApiObject):
        raise ConfigError(f"{text!r}: {module_name} has no class {name} that derives from ApiObject")
    return found
