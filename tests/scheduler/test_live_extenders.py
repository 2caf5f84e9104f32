"""`skysail explain --pod --config`: the extenders of the configuration are really asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from skysail.scheduler.explain import explain_scenario
from skysail.scheduler.live import live_scenario
from skysail.scheduler.live_extenders import LiveExtenders
from skysail.scheduler.scenario import configured_extenders
from skysail.simulator.clock import WallClock
from tests.scheduler.world import World, in_world


@contextmanager
def served() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """An extender that takes n1 away and likes n3."""
    seen: list[tuple[str, Any]] = []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append((self.path, body))
            if self.path.endswith("/filter"):
                items = [node for node in body["Nodes"]["items"] if node["metadata"]["name"] != "n1"]
                answer: Any = {"nodes": {"items": items}, "failedNodes": {"n1": "not here"}}
            else:
                answer = [{"host": "n3", "score": 10}]
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/sub", seen
        finally:
            server.shutdown()
            thread.join()


def scenario_with(extender: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    @in_world
    async def read(world: World) -> None:
        for name in ("n1", "n2", "n3"):
            await world.node(name)
        await world.pod("web")
        found.append(await live_scenario(world.client, "default", "web"))

    read()
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return found[0] | {"config": head | {"extenders": [extender]}}


def explained(scenario: dict[str, Any]) -> dict[str, Any]:
    extenders = configured_extenders(scenario["config"])
    asking = LiveExtenders(extenders, [*scenario["objects"], scenario["pod"]], WallClock())
    return explain_scenario(scenario, None, asking)


def test_the_extenders_of_the_configuration_are_asked_and_obeyed():
    with served() as (url, seen):
        decision = explained(
            scenario_with({"urlPrefix": url, "filterVerb": "filter", "prioritizeVerb": "score", "weight": 1})
        )
    assert [path for path, _ in seen] == ["/sub/filter", "/sub/score"]
    assert seen[0][1]["Pod"]["spec"]["containers"][0]["image"] == "registry.test/app:1"
    assert decision["chosen_set"] == ["n3"]
    assert decision["extender_status"] == {"n1": {"code": "Unschedulable", "reasons": ["not here"]}}
    assert decision["extender_scores"] == {"sub": [0, 100]}
    assert [(each["extender"], each["verb"]) for each in decision["extender_requests"]] == [
        ("sub", "filter"), ("sub", "score"),
    ]  # fmt: skip


def test_an_extender_that_cannot_be_reached_is_named():
    scenario = scenario_with({"urlPrefix": "http://127.0.0.1:1/gone", "filterVerb": "filter", "httpTimeout": "2s"})
    decision = explained(scenario)
    assert decision["chosen_set"] == []
    assert decision["cycle_error"].startswith('Post "http://127.0.0.1:1/gone/filter": ')


def test_one_that_may_be_ignored_costs_nothing_but_its_say():
    scenario = scenario_with({"urlPrefix": "http://127.0.0.1:1/gone", "filterVerb": "filter", "ignorable": True})
    assert explained(scenario)["chosen_set"] == ["n1", "n2", "n3"]
