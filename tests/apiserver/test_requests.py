# ruff: noqa: E501 - one case a line
"""Paths, queries and Accept headers, read as the Go server reads them."""

from typing import Any

import pytest

from skysail.api.errors import ApiError, BadRequest, Invalid, MethodNotAllowed, NotAcceptable, NotFound
from skysail.apiserver.reading import decode_token, encode_token, parse_revision
from skysail.apiserver.requests import Accepted, Query, list_options, manager_of, negotiate, wants_indent, write_options
from skysail.apiserver.routing import route
from skysail.apiserver.schema import load

SCHEMA = load()
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("pods", "list", "", "", "", False)),
        ("GET", "/api/v1/namespaces/shop/pods/web", ("pods", "get", "shop", "web", "", False)),
        ("POST", "/api/v1/namespaces/shop/pods/web/binding", ("pods", "create", "shop", "web", "binding", False)),
        ("PUT", "/api/v1/namespaces/shop/finalize", ("namespaces", "update", "", "shop", "finalize", False)),
        ("GET", "/api/v1/namespaces/shop", ("namespaces", "get", "", "shop", "", False)),
        ("DELETE", "/apis/apps/v1/namespaces/shop/deployments", ("deployments", "deletecollection", "shop", "", "", False)),
        ("GET", "/api/v1/watch/namespaces/shop/pods", ("pods", "list", "shop", "", "", True)),
    ],
)  # fmt: skip
def test_a_path_names_a_resource(method: str, path: str, expected: tuple[Any, ...]) -> None:
    target = route(SCHEMA, method, path)
    assert target is not None
    found = (target.resource.resource, target.verb, target.namespace, target.name, target.subresource, target.watch)
    assert found == expected


@pytest.mark.parametrize(
    "path", ["/", "/api", "/apis/apps", "/apis/nosuch/v1/x", "/metrics", "/api/v1", "/api/v1//pods"]
)
def test_other_paths_name_none(path: str) -> None:
    assert route(SCHEMA, "GET", path) is None


@pytest.mark.parametrize(
    ("method", "path", "error"),
    [
        ("GET", "/api/v1/widgets", NotFound),
        ("GET", "/apis/apps/v9/deployments", NotFound),
        ("GET", "/api/v1/namespaces/a/pods/b/frob", NotFound),
        ("GET", "/api/v1/namespaces/a/nodes", NotFound),
        ("PUT", "/api/v1/namespaces/a/pods", MethodNotAllowed),
        ("DELETE", "/api/v1/namespaces", MethodNotAllowed),
        ("HEAD", "/api/v1/pods", MethodNotAllowed),
        ("GET", "/api/v1/namespaces/a/pods/b/binding", MethodNotAllowed),
    ],
)
def test_what_a_group_does_not_have_is_refused(method: str, path: str, error: type[ApiError]) -> None:
    with pytest.raises(error):
        route(SCHEMA, method, path)


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("True", True), ("", True), ("x", True), ("0", False), ("FALSE", False)]
)
def test_any_value_but_no_is_true(value: str, expected: bool) -> None:
    assert Query((("watch", value),)).flag("watch") is expected
    assert Query(()).flag("watch") is False


def test_numbers_are_64_bits_wide() -> None:
    assert Query((("limit", "-3"),)).integer("limit") == -3
    with pytest.raises(BadRequest, match="value out of range"):
        Query((("limit", "99999999999999999999"),)).integer("limit")


def test_a_watch_from_nowhere_begins_with_what_is_there() -> None:
    options = list_options(Query((("resourceVersion", "0"),)), watch=True)
    assert (options.send_initial_events, options.match) == (True, "NotOlderThan")
    assert list_options(Query((("resourceVersion", "5"),)), watch=True).send_initial_events is None


def test_a_dry_run_is_all_or_nothing() -> None:
    assert write_options(Query((("dryRun", "All"),)), "CreateOptions").dry_run
    with pytest.raises(Invalid, match="dryRun"):
        write_options(Query((("dryRun", "Some"),)), "CreateOptions")


@pytest.mark.parametrize(
    ("query", "apply", "message"),
    [
        ({}, True, "fieldManager: Required value: is required for apply patch"),
        ({"force": "true"}, False, "force: Forbidden: may not be specified for non-apply patch"),
        ({"fieldManager": "x" * 129}, False, "fieldManager: Too long: may not be more than 128 bytes"),
        ({"fieldManager": "a\x01"}, False, "invalid character U+0001 (at position 1)"),
        ({"fieldValidation": "Odd"}, False, 'fieldValidation: Unsupported value: "Odd"'),
    ],
)
def test_options_of_a_patch_are_checked(query: dict[str, str], apply: bool, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        write_options(Query(tuple(query.items())), "PatchOptions", apply=apply)
    assert message in caught.value.status.message


def test_the_manager_is_named_or_the_program_that_asks() -> None:
    assert manager_of("me", "kubectl/v1.36") == "me"
    assert manager_of("", "kubectl/v1.36 (linux)") == "kubectl"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", Accepted("json")),
        ("application/yaml", Accepted("yaml")),
        ("application/vnd.kubernetes.protobuf,application/json", Accepted("json")),
        (f"{TABLE},application/json", Accepted("json", "Table")),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Accepted("json", "Table", "v1beta1")),
        ("application/json;as=Frob;v=v1;g=meta.k8s.io,application/json", Accepted("json")),
        ("text/html,*/*;q=0.8", Accepted("json")),
        ("application/json;q=0.1,application/yaml", Accepted("yaml")),
    ],
)
def test_accept_is_taken_in_order_of_preference(accept: str, expected: Accepted) -> None:
    assert negotiate({"accept": accept}) == expected


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "application/json;as=Frob;v=v1;g=meta.k8s.io"])
def test_what_cannot_be_given_is_406(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        negotiate({"accept": accept})


def test_people_get_indented_answers() -> None:
    assert wants_indent(Query((("pretty", "true"),)), {})
    assert wants_indent(Query(()), {"user-agent": "curl/8"})
    assert not wants_indent(Query((("pretty", "false"),)), {"user-agent": "curl/8"})


def test_a_continue_token_is_read_back() -> None:
    assert decode_token(encode_token(7, "a/b\0")) == (7, "a/b\0")


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("nope", "looking for beginning of value"),
        ("####", "illegal base64"),
        (encode_token(0, "a"), "incorrect encoded start resourceVersion"),
        (encode_token(5, ""), "encoded start key empty"),
        (encode_token(5, "../x"), "continue key is not valid: ../x"),
        ("eyJ2IjoieCJ9", "does not recognize this encoded version x"),
        ("", "unexpected end of JSON input"),
    ],
)
def test_a_continue_token_of_somebody_else_is_refused(token: str, message: str) -> None:
    with pytest.raises(BadRequest, match="invalid continue token") as caught:
        decode_token(token)
    assert message in caught.value.status.message


def test_a_resource_version_is_a_number() -> None:
    assert (parse_revision(""), parse_revision("42")) == (0, 42)
    for text in ("-1", "abc", str(2**64)):
        with pytest.raises(ValueError, match=text):
            parse_revision(text)
