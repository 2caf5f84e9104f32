"""Null in an answer means absent, as Go reads it; only templates keep theirs, because they are compared whole."""

import msgspec

from skysail.api.apps import Deployment
from skysail.api.cluster import Event
from skysail.api.core import Pod
from skysail.client.codec import decode_event, decode_list, decode_object


def test_a_null_list_or_map_or_text_reads_as_absent() -> None:
    body = b'{"metadata": {"name": null, "labels": null}, "spec": {"containers": null}, "status": null}'
    assert decode_object(Pod, body, "") == Pod()


def test_a_null_time_of_an_event_reads_as_absent() -> None:
    assert decode_object(Event, b'{"eventTime": null, "series": null}', "").event_time is None


def test_nulls_inside_lists_and_watch_events_read_as_absent() -> None:
    assert decode_list(Pod, b'{"items": [{"metadata": {"labels": null}}]}', "").items == (Pod(),)
    assert decode_event(Pod, b'{"type": "ADDED", "object": {"spec": {"tolerations": null}}}', "").object == Pod()


def test_a_template_keeps_its_nulls() -> None:
    body = b'{"metadata": {"labels": null}, "spec": {"template": {"metadata": {"creationTimestamp": null}}}}'
    template = decode_object(Deployment, body, "").spec.template
    assert msgspec.json.decode(template) == {"metadata": {"creationTimestamp": None}}
