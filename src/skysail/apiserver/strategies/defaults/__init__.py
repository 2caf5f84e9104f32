"""What the API fills in when a manifest leaves it out, kind by kind.

Each function alters one object in place and may be applied again without effect. Absent, null and the zero value of a
field that is no pointer upstream count as "left out". The modules: `quantities`, `containers`, `volumes`, `pods`
(everything with a pod spec needs these), then `workloads`, `core` and `groups` with one function a kind.

Source: pkg/apis/*/v1/defaults.go, v1.36.
"""
