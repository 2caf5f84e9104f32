"""Admission: the rules that look beyond one object, in kube-apiserver's order.

`admit` runs before an object is prepared and validated, and may alter it; `check` runs afterwards and may only refuse.
Refusals are 403 with upstream's words. A plugin is one function; `chain` lists them.

Switches (in `ctx.options`): `enable-service-account-admission` = "true" turns ServiceAccount on.
"""

from skysail.apiserver.admission.chain import admit, check

__all__ = ["admit", "check"]
