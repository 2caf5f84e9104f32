"""Bytes of requests to objects in normal form: JSON, YAML and protobuf, with upstream's words for every mistake.

    body         whole request bodies: `decode_body`
    patches      the bodies of PATCH, and the check of what a patch made: `read_*`, `check_patched`
    readers      compiled readers: check, canonicalise, leave out and fill in; `normalize` is one of them
    zeros, ordering      what is always written, and in which order
    diagnosis    the words when a reader is surprised
    json_text, yaml_text, protobuf, scalars, respelling      one notation each

Normal form: what the real server would answer after its structs had held the object: quantities and times canonical,
empty `omitempty` fields left out, always-written fields (`status: {}`) there, no unknown field.
"""

from skysail.apiserver.decoding.body import decode_body
from skysail.apiserver.decoding.readers import normalize

__all__ = ["decode_body", "normalize"]
