"""The deployed rights cover every kind the engine watches and writes besides its own."""

from pathlib import Path

import pytest
import yaml

MANIFEST = Path(__file__).parents[2] / "deploy" / "batch" / "batch.yaml"


def granted():
    found = set()
    for document in yaml.safe_load_all(MANIFEST.read_text()):
        if document["kind"] == "ClusterRole":
            for rule in document["rules"]:
                found |= {
                    (group, resource, verb)
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for verb in rule["verbs"]
                }
    return found


@pytest.mark.parametrize(
    ("group", "resource", "verbs"),
    [
        ("", "namespaces", "list watch"),
        ("", "persistentvolumeclaims", "list watch patch get"),
        ("", "persistentvolumes", "list watch patch get"),
        ("storage.k8s.io", "storageclasses", "list watch"),
        ("storage.k8s.io", "csinodes", "list watch"),
        ("storage.k8s.io", "csistoragecapacities", "list watch"),
        ("", "pods/status", "patch"),
        ("", "pods/binding", "create"),
        ("", "pods/eviction", "create"),
    ],
)
def test_what_the_engine_does_it_may_do(group, resource, verbs):
    assert {(group, resource, verb) for verb in verbs.split()} <= granted()
