"""How extenders' answers are read: any letter case, absent values, and what is refused."""

import base64
from pathlib import Path

import pytest

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.node import Node
from skysail.scheduler.config.types import Extender, ExtenderTLSConfig
from skysail.scheduler.explain import compare, explain_scenario, load_scenarios
from skysail.scheduler.extenders.answers import (
    AnswerError,
    HostPriority,
    out_of_range,
    read_filter,
    read_node,
    read_preemption,
    read_priorities,
)
from skysail.scheduler.extenders.chain import Candidate, ExtenderChain
from skysail.scheduler.extenders.talking import server_configs
from skysail.scheduler.framework.conversation import Reply, hold
from skysail.scheduler.registry import REGISTRY

URL = "http://extender.test"
GOLDEN = Path(__file__).parents[1] / "golden" / "scheduler" / "extenders.json.gz"


def test_every_recorded_decision_with_extenders_is_ours_request_bodies_included():
    only = frozenset(REGISTRY)
    differing = {}
    for scenario in load_scenarios(GOLDEN):
        differences = compare(scenario["expected"], explain_scenario(scenario, only), only)
        if differences:
            differing[scenario["id"]] = differences
    assert differing == {}


@pytest.mark.parametrize("key", ["NodeNames", "nodenames", "nodeNames", "NODENAMES"])
def test_keys_are_read_in_any_letter_case(key: str):
    assert read_filter(URL, f'{{"{key}": ["a"]}}'.encode()).node_names == ("a",)


def test_keys_of_maps_and_of_labels_keep_their_case():
    answer = read_filter(URL, b'{"failednodes": {"Node-A": "no"}}')
    assert answer.failed_nodes == {"Node-A": "no"}
    node = read_node(URL, {"METADATA": {"Name": "a", "labels": {"Zone": "Z"}}, "spec": {"TAINTS": [{"Key": "k"}]}})
    assert (node.name, node.metadata.labels, node.spec.taints[0].key) == ("a", {"Zone": "Z"}, "k")


def test_null_is_absent_and_unknown_keys_are_passed_over():
    answer = read_filter(URL, b'{"nodes": null, "nodenames": null, "error": null, "other": [1, 2]}')
    assert (answer.nodes, answer.node_names) == (None, None)
    assert read_filter(URL, b"null").node_names is None
    assert read_priorities(URL, b"null") == ()


def test_only_the_first_value_of_a_body_counts():
    assert read_priorities(URL, b'[{"host": "a", "score": 3}] trailing') == (HostPriority("a", 3),)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "EOF"),
        (b"garbage", "invalid character 'g' looking for beginning of value"),
        (b'{"nodenames": [', "unexpected EOF"),
        (b'{"error": "license server down"}', "license server down"),
    ],
)
def test_what_is_no_answer_is_told_in_upstreams_words(body: bytes, text: str):
    with pytest.raises(AnswerError) as raised:
        read_filter(URL, body)
    assert str(raised.value) == text


def test_an_answer_of_the_wrong_shape_names_the_extender():
    with pytest.raises(AnswerError, match=f'extender "{URL}" gave an answer that cannot be read'):
        read_filter(URL, b'{"nodenames": "a"}')
    with pytest.raises(AnswerError, match=r"\(priorities\), a bare list is wanted"):
        read_priorities(URL, b'{"priorities": []}')


def test_scores_outside_the_range_are_told():
    assert out_of_range(URL, [HostPriority("a", 10), HostPriority("b", 0)]) == ""
    assert out_of_range(URL, [HostPriority("a", -1)]).startswith(f'extender "{URL}" scored node "a" -1')


def test_victims_are_read_by_uid():
    answer = read_preemption(URL, b'{"nodenametometavictims": {"n1": {"pods": [{"uid": "u1"}]}, "n2": null}}')
    found = answer.victims["n1"]
    assert found is not None
    assert [each.uid for each in found.pods] == ["u1"]
    assert answer.victims["n2"] is None


def test_https_without_a_certificate_authority_is_not_verified_and_with_one_it_is():
    (bare,) = server_configs([Extender(url_prefix="https://x", enable_https=True)]).values()
    assert bare.insecure
    tls = ExtenderTLSConfig(ca_data=base64.b64encode(b"pem").decode(), server_name="x")
    (checked,) = server_configs([Extender(url_prefix="https://x", enable_https=True, tls_config=tls)]).values()
    assert (checked.insecure, checked.ca_data, checked.tls_server_name) == (False, b"pem", "x")


def test_certificates_that_cannot_be_used_are_refused_with_their_place():
    missing = ExtenderTLSConfig(ca_file="/nowhere/ca.pem")
    with pytest.raises(ConfigError, match=r"extenders\[0\]\.tlsConfig\.caFile"):
        server_configs([Extender(url_prefix="https://x", tls_config=missing)])
    lonely = ExtenderTLSConfig(cert_data=base64.b64encode(b"pem").decode())
    with pytest.raises(ConfigError, match="needed together"):
        server_configs([Extender(url_prefix="https://x", tls_config=lonely)])


def test_two_ways_to_reach_one_url_are_refused():
    plain = Extender(url_prefix="https://x", filter_verb="filter")
    named = Extender(
        url_prefix="https://x", prioritize_verb="prioritize", tls_config=ExtenderTLSConfig(server_name="y")
    )
    assert list(server_configs([plain, plain])) == ["https://x"]
    with pytest.raises(ConfigError, match=r"extenders\[1\]\.tlsConfig: differs from that of extenders\[0\]"):
        server_configs([plain, named])


def test_the_scores_of_two_extenders_with_one_url_add_up():
    chain = ExtenderChain([Extender(url_prefix=URL, prioritize_verb=verb, weight=2) for verb in ("near", "cheap")])
    candidates = [Candidate(name, Node(), name) for name in ("a", "b")]
    answers = {
        "near": b'[{"host": "a", "score": 3}]',
        "cheap": b'[{"host": "a", "score": 1}, {"host": "b", "score": 4}]',
    }
    found = hold(chain.prioritize(Pod(), candidates, []), lambda call: Reply(200, answers[call.verb]))
    assert found == {URL: [80, 80]}
