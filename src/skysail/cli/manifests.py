"""Manifests from files to the API: YAML documents, each created by its kind."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from skysail.api.errors import ConfigError
from skysail.api.kinds import KINDS
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_manifests(file: Path) -> list[Raw]:
    """The documents of one YAML file, empty ones left out.

    Raises:
        ConfigError: The file cannot be read, is no YAML, or a document is no object with apiVersion, kind and name.
    """
    try:
        documents = list(yaml.load_all(file.read_text(encoding="utf-8"), Loader=_Loader))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(file)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"is no YAML: {error}", file=str(file)) from error
    return list(_checked(documents, file))


def _checked(documents: list[object], file: Path) -> Iterator[Raw]:
    for number, document in enumerate(documents):
        if document is None:
            continue
        path = f"document {number + 1}"
        if not isinstance(document, dict):
            raise ConfigError("is no object", file=str(file), path=path)
        for field in ("apiVersion", "kind"):
            if not isinstance(document.get(field), str):
                raise ConfigError("must be a string", file=str(file), path=f"{path}, {field}")
        yield document


async def create_all(client: ApiClient, documents: list[Raw], file: Path) -> int:
    """Create every document, in order; how many there were.

    Raises:
        ConfigError: A document's kind is not one that Skysail knows.
        ApiError: The server refused one.
    """
    kinds = {(kind.api_version, kind.name): kind for kind in KINDS}
    for document in documents:
        kind = kinds.get((document["apiVersion"], document["kind"]))
        if kind is None:
            raise ConfigError(f"unknown kind {document['kind']!r} of {document['apiVersion']!r}", file=str(file))
        await client.create(kind, document, document.get("metadata", {}).get("namespace", "default"))
    return len(documents)
