"""Objects as rows for people: what `kubectl get` prints.

    table        `as_table`: rows and column definitions for any resource
    columns      how columns are declared, and the printer of each resource
    pods, workloads, network, storage, cluster, policies      the cells of one family of kinds each
    cells        ages, selectors, lists: what several kinds print alike
    jsonpath     additional printer columns of CRDs

Kinds without a printer show Name and Created At; custom resources show their own columns, or Age.
"""

from skysail.apiserver.tables.table import as_table

__all__ = ["as_table"]
