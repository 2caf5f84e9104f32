"""Compiling and running CEL expressions with Kubernetes' types and functions.

Two environments work together. One only checks types: it knows Kubernetes' opaque types, so wrong expressions are
refused as upstream refuses them. The other runs: everything of Kubernetes' is bytes there, and functions take anything.
Between the two the tree is rewritten:

    device.attributes[d]       an unknown domain is an empty map, not an error
    x == y                     where x may be one of Kubernetes' values: compared by us
    format.validate(text)      an optional is made of what our function lists

Source: k8s.io/dynamic-resource-allocation/cel/compile.go, v1.36.
Differs: costs at run time are not counted; `has(device.driver)` and the like are
    refused, and so is `string()` of an address.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from skysail.api.errors import SkysailError
from skysail.scheduler.devices.cel.functions import FUNCTIONS, OPAQUE, QUANTITY, SEMVER, CelFunction
from skysail.scheduler.devices.cel.tree import CelType, CheckedTree, Node, read_checked, write_parsed
from skysail.scheduler.devices.cel.values import CelError, same

CEL_MISSING: Final = (
    "device claims need the CEL library, which is not installed: install skysail[cel], or leave claims out of the pod"
)
DEVICE: Final = "device"
DEVICE_FIELDS: Final = ("driver", "allowMultipleAllocations", "attributes", "capacity")
_DOMAINS: Final = ("device.attributes", "device.capacity")
_EXTENDED: Final = ("indexOf", "lastIndexOf")
"""Functions that exist already and get more overloads; the library takes those only from an extension."""
_EQUALS, _VALIDATE = "k8s_equals", "k8s_violations"


class CelMissing(SkysailError):
    """The CEL library is not installed."""


class CelCompileError(CelError):
    """An expression that does not compile; the message is the library's."""


class CelRuntimeError(CelError):
    """An expression that failed; the message is as cel-go words it, where it has words."""


def is_available() -> bool:
    """Whether the CEL library is installed."""
    try:
        _library()
    except CelMissing:
        return False
    return True


def _library() -> Any:
    try:
        from cel_expr_python import cel
    except ImportError as error:
        raise CelMissing(CEL_MISSING) from error
    return cel


class CelProgram:
    """An expression ready to run.

    Attributes:
        expression: Its text.
        tree: What the type checker made of it.
        result_type: Its static type, `dyn` when only running it will tell.
    """

    __slots__ = ("_runnable", "expression", "result_type", "tree")

    def __init__(self, expression: str, tree: CheckedTree, runnable: Any) -> None:
        self.expression, self.tree, self._runnable = expression, tree, runnable
        self.result_type: CelType = tree.type_of(tree.root)

    def run(self, variables: Mapping[str, Any]) -> Any:
        """Evaluate.

        Raises:
            CelRuntimeError: It failed.
        """
        value = self._runnable.eval(data=variables)
        if value.type().name() == "ERROR":
            raise CelRuntimeError(worded(str(value.value())))
        return value.value()


def compile_expression(expression: str) -> CelProgram:
    """Check an expression and make it runnable.

    Raises:
        CelCompileError: It does not compile.
        CelMissing: There is no CEL library.
    """
    checker, runner = _checker(), _runner()
    try:
        tree = read_checked(checker.compile(expression).serialize())
    except RuntimeError as error:
        raise CelCompileError(f"compilation failed: {_status_text(str(error))}") from error
    _check_fields(tree.root)
    return CelProgram(expression, tree, runner.deserialize(write_parsed(_rewritten(tree.root, tree))))


def worded(message: str) -> str:
    """A run-time error in cel-go's words."""
    text = _status_text(message)
    if text.startswith("Key not found in map : "):
        return f"no such key: {text.removeprefix('Key not found in map : ').strip(chr(34))}"
    if text.startswith("No matching overloads found"):
        return "no such overload"
    return {"divide by zero": "division by zero", "modulus by zero": "modulus by zero"}.get(text, text)


def _status_text(message: str) -> str:
    """`INVALID_ARGUMENT: text [INVALID_ARGUMENT]` without the codes."""
    code, colon, rest = message.partition(": ")
    if colon and code.isupper():
        message = rest.removesuffix(f" [{code}]")
    return message


# -- the two environments -------------------------------------------------------------------------------------------


def _extensions() -> list[Any]:
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    return [ext_strings.ExtStrings(2), ext_bindings.ExtBindings(), ext_optional.ExtOptional()]


@lru_cache(maxsize=1)
def _checker() -> Any:
    cel = _library()
    types = _types(cel)
    domain = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    capacity = cel.Type.Map(cel.Type.STRING, types[QUANTITY])
    variables = {
        DEVICE: domain,
        "device.driver": cel.Type.STRING,
        "device.allowMultipleAllocations": cel.Type.BOOL,
        "device.attributes": cel.Type.Map(cel.Type.STRING, domain),
        "device.capacity": cel.Type.Map(cel.Type.STRING, capacity),
    }
    declared: dict[str, list[Any]] = {}
    for row in FUNCTIONS:
        parameters = [types[each] for each in row.parameters]
        overload = cel.Overload(row.overload, types[row.returns], parameters, row.member)
        declared.setdefault(row.name, []).append(overload)
    more = cel.CelExtension("kubernetes", [cel.FunctionDecl(name, declared.pop(name)) for name in _EXTENDED])
    functions = [cel.FunctionDecl(name, overloads) for name, overloads in declared.items()]
    return cel.NewEnv(variables=variables, extensions=[*_extensions(), more], functions=functions)


def _types(cel: Any) -> dict[str, Any]:
    plain = cel.Type
    texts = plain.List(plain.STRING)
    types = {
        "bool": plain.BOOL, "int": plain.INT, "string": plain.STRING, "double": plain.DOUBLE, "dyn": plain.DYN,
        "list": plain.List(plain.DYN), "list(string)": texts, "map": plain.Map(plain.STRING, texts),
        "optional": plain.DYN,
    }  # fmt: skip
    return types | {name: plain.AbstractType(name) for name in OPAQUE}


@lru_cache(maxsize=1)
def _runner() -> Any:
    cel = _library()
    own = (CelFunction(_EQUALS, _EQUALS, False, ("dyn", "dyn"), "bool", same),)
    declared: dict[tuple[str, bool, tuple[bool, ...]], Any] = {}
    for row in (*FUNCTIONS, *own):
        name = _VALIDATE if row.name == "validate" else row.name
        lists = tuple(each.startswith("list") for each in row.parameters)
        parameters = [cel.Type.LIST if each else cel.Type.DYN for each in lists]
        overload = cel.Overload(
            f"{name}_{int(row.member)}_{len(parameters)}", cel.Type.DYN, parameters, row.member, row.run
        )
        declared.setdefault((name, row.member, lists), overload)
    functions: dict[str, list[Any]] = {}
    for (name, _, _), overload in declared.items():
        functions.setdefault(name, []).append(overload)
    library = cel.CelExtension("kubernetes", [cel.FunctionDecl(name, each) for name, each in functions.items()])
    return cel.NewEnv(variables={DEVICE: cel.Type.DYN}, extensions=[*_extensions(), library])


# -- rewriting ------------------------------------------------------------------------------------------------------


def _check_fields(node: Node) -> None:
    """Refuse fields that a device does not have."""
    if node.kind == "select" and node.target is not None and node.target.kind == "ident" and node.target.name == DEVICE:
        raise CelCompileError(f"compilation failed: ERROR: <input>: undefined field '{node.name}'")
    for child in (*node.children, *([node.target] if node.target is not None else [])):
        _check_fields(child)


def _rewritten(node: Node, tree: CheckedTree) -> Node:
    target = _rewritten(node.target, tree) if node.target is not None else None
    children = tuple(_rewritten(child, tree) for child in node.children)
    made = replace(node, target=target, children=children)
    if node.kind == "ident":
        return _variable(made)
    if node.kind == "select" and not node.test_only and _is_domains(node.target):
        assert target is not None
        return _domain(target, Node("const", constant=node.name))
    if node.kind == "call":
        return _call(node, made, tree)
    return made


def _variable(node: Node) -> Node:
    root, dot, name = node.name.partition(".")
    if root == DEVICE and dot:
        return Node("select", name=name, target=Node("ident", name=DEVICE))
    return node


def _is_domains(node: Node | None) -> bool:
    return node is not None and node.kind == "ident" and node.name in _DOMAINS


def _domain(domains: Node, key: Node) -> Node:
    """The attributes (or capacities) of a domain; none when it is unknown."""
    found = Node("call", name="_[?_]", children=(domains, key))
    return Node("call", name="orValue", target=found, children=(Node("struct"),))


def _call(node: Node, made: Node, tree: CheckedTree) -> Node:
    name, children = node.name, made.children
    if name in ("_[_]", "_[?_]", "_?._") and _is_domains(node.children[0]):
        domain = _domain(*children)
        return domain if name == "_[_]" else Node("call", name="optional.of", children=(domain,))
    if name in ("_==_", "_!=_"):
        return _equality(node, made, tree)
    if name == "validate" and "format-validate" in tree.overloads.get(node.id, ()):
        return _validation(made)
    return made


def _equality(node: Node, made: Node, tree: CheckedTree) -> Node:
    left, right = made.children
    kind = tree.type_of(node.children[0]).name
    if kind in (QUANTITY, SEMVER):
        equal = Node("call", name=_EQUALS, children=(left, right))
    elif kind == "dyn" and node.children[0].kind != "const":
        carries = Node("call", name="_==_", children=(_type_of(left), Node("ident", name="bytes")))
        plain = Node("call", name="_==_", children=(left, right))
        ours = Node("call", name=_EQUALS, children=(left, right))
        equal = Node("call", name="_?_:_", children=(carries, ours, plain))
    else:
        return made
    return equal if node.name == "_==_" else Node("call", name="!_", children=(equal,))


def _type_of(node: Node) -> Node:
    return Node("call", name="type", children=(node,))


def _validation(made: Node) -> Node:
    found = replace(made, name=_VALIDATE)
    none = Node("call", name="_==_", children=(found, Node("list")))
    some = Node("call", name="optional.of", children=(found,))
    return Node("call", name="_?_:_", children=(none, Node("call", name="optional.none"), some))
