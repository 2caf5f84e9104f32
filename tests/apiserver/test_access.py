"""Tokens, roles and impersonation."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from skysail.api.errors import ConfigError
from skysail.api.ports import Request, User
from skysail.apiserver.authentication import ADMIN, TokenAuthenticator, parse_tokens, read_token_file
from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.calls import PODS, Caller, serving

ALICE = User("alice", groups=("devs", "system:authenticated"))
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def test_a_token_file_is_read_as_kube_apiserver_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('# people\n\nsecret,admin,1,"system:masters,ops"\nother, alice ,2\n')
    tokens = read_token_file(file)
    assert tokens["secret"] == User("admin", "1", ("system:masters", "ops", "system:authenticated"))
    assert tokens["other"].name == "alice"


@pytest.mark.parametrize(("text", "message"), [("a,b", "found 2"), (",b,c", "the token is empty")])
def test_a_bad_line_of_a_token_file_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_tokens(f"x,y,z\n{text}\n", "tokens.csv")


def test_an_absent_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the token file"):
        read_token_file(tmp_path / "none")


@pytest.mark.parametrize("header", ["", "Bearer", "Basic secret", "Bearer wrong"])
def test_without_a_known_bearer_token_nobody_is_known(header: str) -> None:
    authenticator = TokenAuthenticator({"secret": ADMIN})
    assert authenticator.authenticate({"authorization": header}) is None
    assert authenticator.authenticate({"authorization": "bearer secret"}) is ADMIN


def test_without_tokens_everybody_is_admin() -> None:
    assert TokenAuthenticator(None).authenticate({}) is ADMIN


def with_rbac(test: Callable[[Caller], Awaitable[None]]) -> None:
    async def main(clock: LoopClock) -> None:
        async with serving(clock, options={"authorization-mode": "RBAC"}) as caller:
            await test(caller)

    run_virtual(main)


async def status(
    caller: Caller, method: str, path: str, user: User = ALICE, headers: Mapping[str, str] | None = None
) -> int:
    response = await caller.server.handle(Request(method, path, headers=headers or {}), user)
    if response.stream is not None:
        await response.stream.aclose()  # type: ignore[attr-defined]
    return response.status


async def grant(caller: Caller, subjects: list[dict[str, str]], namespace: str = "", **rule: Any) -> None:
    place = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    kind = "Role" if namespace else "ClusterRole"
    prefix = "" if namespace else "cluster"
    await caller.post(f"{place}/{prefix}roles", {"metadata": {"name": "r"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}
    body = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects}
    await caller.post(f"{place}/{prefix}rolebindings", body)


GROUP = [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "devs"}]


def test_a_role_counts_in_its_namespace_and_for_its_verbs_only() -> None:
    async def test(caller: Caller) -> None:
        assert await status(caller, "GET", PODS) == 403
        await grant(caller, GROUP, "default", apiGroups=[""], resources=["pods"], verbs=["list"])
        assert await status(caller, "GET", PODS) == 200
        assert await status(caller, "GET", "/api/v1/pods") == 403
        assert await status(caller, "GET", f"{PODS}/x") == 403
        assert await status(caller, "DELETE", PODS) == 403

    with_rbac(test)


def test_a_cluster_role_counts_everywhere_for_the_names_and_subresources_it_lists() -> None:
    async def test(caller: Caller) -> None:
        account = [{"kind": "ServiceAccount", "name": "sa", "namespace": "default"}]
        await grant(caller, account, apiGroups=[""], resources=["pods", "*/status"], verbs=["get"], resourceNames=["a"])
        user = User("system:serviceaccount:default:sa")
        assert await status(caller, "GET", f"{PODS}/a", user) == 404
        assert await status(caller, "GET", f"{PODS}/a/status", user) == 404
        assert await status(caller, "GET", f"{PODS}/b", user) == 403
        assert await status(caller, "GET", f"{PODS}/a") == 403

    with_rbac(test)


def test_a_deleted_binding_counts_no_longer() -> None:
    async def test(caller: Caller) -> None:
        await grant(caller, GROUP, "default", apiGroups=["*"], resources=["*"], verbs=["*"])
        assert await status(caller, "GET", PODS) == 200
        await caller.send("DELETE", f"{RBAC}/namespaces/default/rolebindings/b")
        assert await status(caller, "GET", PODS) == 403

    with_rbac(test)


def test_discovery_is_open_to_whoever_is_known_and_the_rest_is_not() -> None:
    async def test(caller: Caller) -> None:
        assert await status(caller, "GET", "/apis") == 200
        assert await status(caller, "GET", "/version") == 200
        assert await status(caller, "GET", "/metrics") == 403
        assert await status(caller, "GET", "/apis", User("nobody")) == 403

    with_rbac(test)


def test_the_roles_people_are_given_are_there() -> None:
    async def test(caller: Caller) -> None:
        names = [item["metadata"]["name"] for item in (await caller.get(f"{RBAC}/clusterroles"))["items"]]
        assert {"admin", "cluster-admin", "edit", "view"} <= set(names)

    with_rbac(test)


def test_masters_may_act_as_others_and_others_may_not() -> None:
    async def test(caller: Caller) -> None:
        headers = {"impersonate-user": "alice", "impersonate-group": "devs"}
        assert await status(caller, "GET", PODS, ADMIN, headers) == 403
        await grant(caller, GROUP, "default", apiGroups=[""], resources=["pods"], verbs=["list"])
        assert await status(caller, "GET", PODS, ADMIN, headers) == 200
        assert await status(caller, "GET", PODS, ALICE, {"impersonate-user": "admin"}) == 403

    with_rbac(test)


def test_an_unknown_mode_stops_the_start() -> None:
    async def main(clock: LoopClock) -> None:
        with pytest.raises(ConfigError, match="unknown authorization mode Odd"):
            async with serving(clock, options={"authorization-mode": "Odd"}):
                await asyncio.sleep(0)

    run_virtual(main)
