"""Probes and lifecycle hooks of containers.

Source: pkg/apis/core/validation/validation.go validateHandler, validateProbe, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, required
from skysail.apiserver.validation.field import Errors, at, non_negative
from skysail.apiserver.validation.names import http_header, port_name, port_number

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_WINDOWS_SIGNALS = ("SIGKILL", "SIGTERM")
_REALTIME = (
    "SIGRTMIN",
    *(f"SIGRTMIN+{number}" for number in range(1, 16)),
    *(f"SIGRTMAX-{number}" for number in range(14, 0, -1)),
    "SIGRTMAX",
)
_LINUX_SIGNALS = (
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO",
    "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT", "SIGSTOP",
    "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM",
    "SIGWINCH", "SIGXCPU", "SIGXFSZ", *_REALTIME,
)  # fmt: skip


def probes(container: Raw, path: str) -> Errors:
    """Check the three probes of a container."""
    errors: Errors = []
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        here = f"{path}.{name}"
        errors += _probe(probe, here)
        if name == "readinessProbe":
            grace = probe.get("terminationGracePeriodSeconds")
            if grace is not None:
                detail = "must not be set for readinessProbes"
                errors.append(invalid(f"{here}.terminationGracePeriodSeconds", grace, detail))
        elif (probe.get("successThreshold") or 0) != 1:
            errors.append(invalid(f"{here}.successThreshold", probe.get("successThreshold") or 0, "must be 1"))
    return errors


def _probe(probe: Raw, path: str) -> Errors:
    errors = handler(probe, None, path)
    for key in _COUNTS:
        errors += non_negative(probe.get(key), f"{path}.{key}")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    return errors


def lifecycle(spec: Raw, grace: int | None, path: str, os: Raw | None) -> Errors:
    """Check the hooks of a container and its stop signal."""
    errors: Errors = []
    for name in ("postStart", "preStop"):
        if spec.get(name) is not None:
            errors += handler(spec[name], grace, f"{path}.{name}")
    signal = spec.get("stopSignal")
    if signal is not None:
        here = f"{path}.stopSignal"
        if os is None:
            errors.append(forbidden(here, "may not be set for containers with empty `spec.os.name`"))
        elif os.get("name") == "windows" and signal not in _WINDOWS_SIGNALS:
            errors.append(not_supported(here, signal, _WINDOWS_SIGNALS))
        elif os.get("name") == "linux" and signal not in _LINUX_SIGNALS:
            errors.append(not_supported(here, signal, sorted(_LINUX_SIGNALS)))
    return errors


def handler(spec: Raw, grace: int | None, path: str) -> Errors:
    """Check that exactly one kind of handler is given, and it."""
    errors: Errors = []
    found = False
    for name in ("exec", "httpGet", "tcpSocket", "grpc", "sleep"):
        action = spec.get(name)
        if action is None:
            continue
        here = f"{path}.{name}"
        if found:
            errors.append(forbidden(here, "may not specify more than 1 handler type"))
            continue
        found = True
        errors += _action(name, action, grace, here)
    if not found:
        errors.append(required(path, "must specify a handler type"))
    return errors


def _action(name: str, action: Raw, grace: int | None, path: str) -> Errors:
    match name:
        case "exec":
            return [] if action.get("command") else [required(f"{path}.command")]
        case "httpGet":
            return _http_get(action, path)
        case "tcpSocket":
            return port(action.get("port") or 0, f"{path}.port")
        case "grpc":
            return port(action.get("port") or 0, f"{path}.port")
    seconds = action.get("seconds") or 0
    if grace is not None and not 0 <= seconds <= grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        return [invalid(path, seconds, detail)]
    return []


def _http_get(action: Raw, path: str) -> Errors:
    errors = [] if action.get("path") else [required(f"{path}.path")]
    errors += port(action.get("port") or 0, f"{path}.port")
    scheme = action.get("scheme") or ""
    if scheme not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{path}.scheme", scheme, ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        errors += at(f"{path}.httpHeaders", http_header(header.get("name") or ""), header.get("name") or "")
    return errors


def port(value: int | str, path: str) -> Errors:
    """Check a port given by number or by name."""
    if isinstance(value, str):
        return at(path, port_name(value), value)
    return at(path, port_number(value), value)
