"""Skysail: Kubernetes scheduling and control loops in Python.

The rooms, in the order a newcomer reads them: `api` (objects), `client`, `informer`, `workqueue`, `controller`,
`controllers`, `scheduler`, `batch`, `diagnosis`, `apiserver`, `simulator`, `testing`, `cli`. Each room's docstring says
what lives there, what never may, and which file to read first.
"""

__version__ = "0.1.0"
