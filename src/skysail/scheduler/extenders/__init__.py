"""Extenders, the client side: HTTP services that filter, score, preempt or bind in the scheduler's place.

Lives here: what is sent to them and how their answers are read (`messages`, `answers`), who of them is asked what
(`chain`), a decision with them in it (`deciding`), all pure and written as conversations; and the shell that holds
these over the network with whole objects (`talking`, `wholes`). Never here: the service side, which is
`skysail.extension`.

Read in this order: `messages`, `answers`, `chain`, `deciding`, `wholes`, `talking`.

Source: pkg/scheduler/extender.go, staging/src/k8s.io/kube-scheduler/extender/v1/types.go, v1.36.
"""
