"""Writes `client.py`: the blocking face of `ApiClient`, method by method, with the same types and docstrings.

    python -m skysail.controller.blocking.source > src/skysail/controller/client.py

A test compares the two, so the blocking face is never behind.
"""

import ast
import inspect
import sys
from types import ModuleType

from skysail.client import api_client

_HEAD = '''"""The typed client for code that blocks. Written by `skysail.controller.blocking.source`; do not edit."""

{imports}

T = TypeVar("T")
TObject = TypeVar("TObject", bound=ApiObject)
{constants}

class BlockingClient:
    """`ApiClient`, every call of which waits for its answer; for notebooks, scripts and the Python prompt.

    Args:
        client: Does the work, on the portal's loop.
        portal: The loop.
    """

    def __init__(self, client: ApiClient, portal: Portal) -> None:
        self._client, self._portal = client, portal

{methods}
'''
_OWN_IMPORTS = (
    "from collections.abc import Iterator",
    "from skysail.client.api_client import ApiClient",
    "from skysail.controller.blocking.portal import Portal",
)


def blocking_source(module: ModuleType = api_client, name: str = "ApiClient") -> str:
    """The text of `client.py`.

    Args:
        module: Where the asynchronous class stands.
        name: The class.
    """
    tree = ast.parse(inspect.getsource(module))
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    methods = [_blocking(each) for each in found.body if _is_public_method(each)]
    text = "\n\n".join(_indented(ast.unparse(method)) for method in methods)
    used = {node.id for node in ast.walk(ast.parse(inspect.cleandoc(text))) if isinstance(node, ast.Name)}
    imports = _imports(tree, used | {"TypeVar", "ApiObject"})
    return _HEAD.format(imports=imports, constants=_constants(tree, used), methods=text)


def _is_public_method(node: ast.stmt) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_")


def _blocking(method: ast.stmt) -> ast.FunctionDef:
    """The method without `async`: the same arguments, passed on."""
    if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise TypeError("only methods have a blocking form")
    names = [each.arg for each in method.args.args[1:]]
    named = [f"{each.arg}={each.arg}" for each in method.args.kwonlyargs]
    call = f"self._client.{method.name}({', '.join(names + named)})"
    returns = method.returns
    if isinstance(method, ast.AsyncFunctionDef):
        streams = isinstance(returns, ast.Subscript) and ast.unparse(returns.value) == "AsyncIterator"
        call = f"self._portal.{'iterate' if streams else 'call'}({call})"
        if isinstance(returns, ast.Subscript) and streams:
            returns = ast.Subscript(ast.Name("Iterator"), returns.slice)
    body: list[ast.stmt] = [method.body[0], *ast.parse(f"return {call}").body]
    plain = ast.FunctionDef(method.name, method.args, body, [], returns, None)
    return ast.fix_missing_locations(plain)


def _imports(tree: ast.Module, used: set[str]) -> str:
    """The source module's imports of the names that are used, and our own, sorted as ruff sorts them."""
    lines = list(_OWN_IMPORTS)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names = sorted(alias.name for alias in node.names if alias.name in used)
            if names:
                lines.append(f"from {node.module} import {', '.join(names)}")
    library = [line for line in lines if not line.startswith("from skysail")]
    return "\n".join(sorted(library) + sorted(set(lines) - set(library)))


def _constants(tree: ast.Module, used: set[str]) -> str:
    """The source module's private constants that defaults name."""
    found = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in used]
    return "\n".join(ast.unparse(node) for node in found if ast.unparse(node.targets[0]).startswith("_"))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


if __name__ == "__main__":
    sys.stdout.write(blocking_source())
