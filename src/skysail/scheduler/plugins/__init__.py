"""The in-tree plugins, each deciding as kube-scheduler 1.36 does.

Lives here: one module for each plugin, its arguments (`args`), and what several
plugins share (`node_matching`, `resource_scoring`, `normalizing`). Never here: a clock, dice, I/O - but for the
asynchronous halves in modules named `*_bind`.

Every plugin answers in table form; `reads` says what its answer depends on. Read `taint_toleration` first.
"""
