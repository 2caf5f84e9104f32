"""Subresources and the resources that are nothing but a question: what each reads, takes and answers.

A *view* (status, scale, resize, ...) shows a part of its parent and takes changes to that part; an *action* (binding,
eviction, token, the reviews) is POSTed to and answers. `table` names them all.
"""

from skysail.apiserver.subresources.table import action_for, view_for

__all__ = ["action_for", "view_for"]
