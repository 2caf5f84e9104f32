"""Schedules of CronJobs: five fields, or a word like `@daily`.

Source: github.com/robfig/cron/v3 parser.go ParseStandard, as vendored at Kubernetes v1.36.
"""

import re


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    (0, 6, _numbered("sun mon tue wed thu fri sat", 0)),
)
_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*|0")


def schedule_fault(spec: str) -> str:
    """What is wrong with a schedule, in upstream's words; empty when it is fine."""
    if not spec:
        return "empty spec string"
    if spec.startswith(("TZ=", "CRON_TZ=")):
        _, blank, rest = spec.partition(" ")
        if not blank:
            return "invalid schedule format: runtime error: slice bounds out of range [:-1]"
        spec = rest.strip()
    if spec.startswith("@"):
        return _descriptor_fault(spec)
    parts = spec.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
    for part, (low, high, names) in zip(parts, _FIELDS, strict=True):
        for item in part.split(","):
            fault = _range_fault(item, low, high, names)
            if fault:
                return fault
    return ""


def _descriptor_fault(spec: str) -> str:
    if spec in _WORDS:
        return ""
    if spec.startswith("@every "):
        text = spec.removeprefix("@every ")
        if _DURATION.fullmatch(text):
            return ""
        return f'failed to parse duration {spec}: time: invalid duration "{text}"'
    return f"unrecognized descriptor: {spec}"


def _range_fault(item: str, low: int, high: int, names: dict[str, int]) -> str:
    pieces = item.split("/")
    bounds = pieces[0].split("-")
    single = len(bounds) == 1
    if bounds[0] in ("*", "?"):
        start, end = low, high
    else:
        numbers = []
        for bound in bounds[:2]:
            number, fault = _number(bound, names)
            if fault:
                return fault
            numbers.append(number)
        if len(bounds) > 2:
            return f"too many hyphens: {item}"
        start, end = numbers[0], numbers[-1]
    step = 1
    if len(pieces) == 2:
        step, fault = _number(pieces[1], {})
        if fault:
            return fault
        if single and bounds[0] not in ("*", "?"):
            end = high
    elif len(pieces) > 2:
        return f"too many slashes: {item}"
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {item}"
    if end > high:
        return f"end of range ({end}) above maximum ({high}): {item}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {item}"
    return f"step of range should be a positive number: {item}" if step == 0 else ""


def _number(text: str, names: dict[str, int]) -> tuple[int, str]:
    if text.lower() in names:
        return names[text.lower()], ""
    if not re.fullmatch(r"[-+]?\d+", text):
        return 0, f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
    number = int(text)
    if number < 0:
        return 0, f"negative number ({number}) not allowed: {text}"
    return number, ""
