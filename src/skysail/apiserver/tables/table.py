"""Objects of one resource as a meta.k8s.io Table.

Source: apiserver/pkg/endpoints/handlers/response.go; apiextensions-apiserver `tableconvertor`, v1.36.
"""

import json
from collections.abc import Sequence
from datetime import datetime

from skysail.api.raw import Raw
from skysail.apiserver.contract import PrinterColumn, ResourceInfo
from skysail.apiserver.tables.cells import UNKNOWN, human_duration, moment
from skysail.apiserver.tables.columns import DEFAULT, PRINTERS, Printer, definition
from skysail.apiserver.tables.jsonpath import find

AGE = PrinterColumn(name="Age", type="date", path=".metadata.creationTimestamp")


def as_table(
    resource: ResourceInfo, objects: Sequence[Raw], include_object: str, now: datetime, version: str = "v1"
) -> Raw:
    """A Table of objects.

    Args:
        resource: Whose objects they are.
        objects: With `metadata`; of a bookmark nothing else is there.
        include_object: None, Metadata or Object: what each row carries.
        now: For ages.
        version: Of meta.k8s.io; the rows' metadata is of the same.

    Returns:
        The Table, without list metadata.
    """
    columns, rows = _custom(resource, objects, now) if resource.custom else _builtin(resource, objects, now)
    # Upstream's generic convertor starts from no rows at all, the printers from an empty list.
    unprinted = not resource.custom and (resource.group, resource.resource) not in PRINTERS
    for row, obj in zip(rows, objects, strict=True):
        row["object"] = _carried(obj, include_object, version)
    return {
        "kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": {}, "columnDefinitions": columns,
        "rows": None if unprinted and not rows else rows,
    }  # fmt: skip


def _carried(obj: Raw, include_object: str, version: str) -> Raw | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def _builtin(resource: ResourceInfo, objects: Sequence[Raw], now: datetime) -> tuple[list[Raw], list[Raw]]:
    printer: Printer = PRINTERS.get((resource.group, resource.resource), DEFAULT)
    width = len(printer.columns)
    rows: list[Raw] = []
    for obj in objects:
        named = obj if "name" in obj["metadata"] else {**obj, "metadata": {**obj["metadata"], "name": ""}}
        row: Raw = {"cells": list(printer.cells(named, now))[:width]}
        if conditions := printer.conditions(obj):
            row["conditions"] = conditions
        rows.append(row)
    return [definition(column) for column in printer.columns], rows


def _custom(resource: ResourceInfo, objects: Sequence[Raw], now: datetime) -> tuple[list[Raw], list[Raw]]:
    columns = resource.printer_columns or (AGE,)
    definitions = [definition("Name"), *(_definition(column) for column in columns)]
    rows: list[Raw] = []
    for obj in objects:
        cells = [obj["metadata"].get("name", ""), *(_cell(column, obj, now) for column in columns)]
        rows.append({"cells": cells})
    return definitions, rows


def _definition(column: PrinterColumn) -> Raw:
    description = column.description or f"Custom resource definition column (in JSONPath format): {column.path}"
    return {
        "name": column.name, "type": column.type, "format": column.format, "description": description,
        "priority": column.priority,
    }  # fmt: skip


def _cell(column: PrinterColumn, obj: Raw, now: datetime) -> object:
    found = find(column.path, obj)
    if not found or found[0] is None:
        return None
    if column.type == "string" and len(found) > 1:
        return ",".join(_text(item) for item in found)
    return _CELLS.get(column.type, _as_text)(found[0], now)


def _as_text(value: object, _: datetime) -> object:
    return _text(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _integer(value: object, _: datetime) -> object:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: object, _: datetime) -> object:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: object, _: datetime) -> object:
    return value if isinstance(value, bool) else None


def _date(value: object, now: datetime) -> object:
    at = moment(value)
    if at is None or at.tzinfo is None:
        return "<invalid>" if isinstance(value, str) else UNKNOWN
    return human_duration(now - at)


_CELLS = {"integer": _integer, "number": _number, "boolean": _boolean, "date": _date, "string": _as_text}
