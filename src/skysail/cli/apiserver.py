"""`skysail apiserver`: the API server alone, on loopback."""

import re
from pathlib import Path

import typer


def apiserver(
    port: int = typer.Option(6443, "--port", "-p", min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one."),
    insecure_http: bool = typer.Option(False, "--insecure-http", help="Serve plain HTTP instead of TLS."),
    token_auth_file: Path | None = typer.Option(
        None, "--token-auth-file", help="CSV of token,user,uid,groups; without it a token is made and printed."
    ),
    authorization_mode: str = typer.Option("AlwaysAllow", "--authorization-mode", help="AlwaysAllow or RBAC."),
    kubeconfig_out: Path | None = typer.Option(
        None, "--kubeconfig-out", help="Where the kubeconfig is written; your own is never touched."
    ),
    data_dir: Path | None = typer.Option(None, "--data-dir", help="Where objects are kept; none keeps them in memory."),
    compaction_interval: str = typer.Option("5m", "--compaction-interval", help="How often history is forgotten."),
    enable_admission_plugins: str = typer.Option(
        "", "--enable-admission-plugins", help="Beside the default ones: ServiceAccount."
    ),
) -> None:
    """Run the API server alone: no nodes, no controllers, nothing that kube-apiserver does not create itself."""
    from skysail.api.errors import ConfigError
    from skysail.cli.logs import log_to_stderr
    from skysail.cli.running import run
    from skysail.cli.serving import Serving, serve_until_cancelled

    if authorization_mode not in ("AlwaysAllow", "RBAC"):
        raise ConfigError(
            f"unknown mode {authorization_mode!r}; known are AlwaysAllow, RBAC", path="--authorization-mode"
        )
    if unknown := {name for name in enable_admission_plugins.split(",") if name} - {"ServiceAccount"}:
        raise ConfigError(
            f"unknown plugin {min(unknown)!r}; only ServiceAccount can be added", path="--enable-admission-plugins"
        )
    serving = Serving(
        port=port,
        tls=not insecure_http,
        token_file=token_auth_file,
        data_dir=data_dir,
        compaction_seconds=parse_duration(compaction_interval, "--compaction-interval"),
        options={
            "authorization-mode": authorization_mode,
            "enable-service-account-admission": str("ServiceAccount" in enable_admission_plugins).lower(),
        },
    )
    log_to_stderr(0)
    run(lambda: serve_until_cancelled(serving, kubeconfig_out))


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str, option: str) -> float:
    """Seconds of a Go duration such as `20s`, `1m30s`, `500ms`.

    Raises:
        ConfigError: The text is no positive duration.
    """
    from skysail.api.errors import ConfigError

    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or seconds <= 0:
        raise ConfigError(f"{text!r} is no duration; write 20s, 5m or 1m30s", path=option)
    return seconds
