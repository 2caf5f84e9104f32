"""Custom resources: what a CustomResourceDefinition makes of the server while it runs.

    definitions    rules for the definitions themselves: defaults, validation, deletion
    structural     a version's schema, compiled: prune, default, and its types for apply
    checking       is a value what the schema says, in the words of kube-openapi
    rules          `x-kubernetes-validations`: CEL, by the optional extra `skysail[cel]`
    kinds          one custom kind in one version: its strategy and its views
    bodies         reading the body of a custom object
    keeper         accepts names, serves and withdraws resources, cleans up behind a deleted definition

Differs: no conversion webhooks; several versions differ in `apiVersion` alone.

Source: k8s.io/apiextensions-apiserver, v1.36.
"""
