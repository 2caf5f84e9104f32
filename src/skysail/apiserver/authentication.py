"""Who asks: bearer tokens, from a file in kube-apiserver's CSV form.

    token,user,uid,"group1,group2"

Source: apiserver/pkg/authentication/token/tokenfile, v1.36.
"""

import csv
from collections.abc import Mapping
from pathlib import Path

from skysail.api.errors import ConfigError
from skysail.api.ports import User

AUTHENTICATED = "system:authenticated"
ADMIN = User(name="admin", groups=("system:masters", AUTHENTICATED))
ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))


def read_token_file(path: Path) -> Mapping[str, User]:
    """Tokens and the users they stand for.

    Raises:
        ConfigError: The file cannot be read, or a line has too few columns.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the token file: {error}", file=str(path)) from error
    return parse_tokens(text, str(path))


def parse_tokens(text: str, file: str = "") -> Mapping[str, User]:
    """The tokens of a CSV text; blank lines and `#` comments are skipped.

    Raises:
        ConfigError: A line has fewer than three columns, or an empty token.
    """
    tokens: dict[str, User] = {}
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for number, row in enumerate(csv.reader(lines, skipinitialspace=True), start=1):
        if len(row) < 3:
            raise ConfigError(
                f"want at least the columns token,user,uid, found {len(row)}", file=file, path=f"[{number}]"
            )
        token, name, uid = (column.strip() for column in row[:3])
        if not token:
            raise ConfigError("the token is empty", file=file, path=f"[{number}]")
        groups = [group.strip() for group in row[3].split(",")] if len(row) > 3 else []
        tokens[token] = User(name=name, uid=uid, groups=(*filter(None, groups), AUTHENTICATED))
    return tokens


class TokenAuthenticator:
    """Finds the user of a request by its `Authorization: Bearer` header.

    Args:
        tokens: Known tokens; None lets everybody in as `ADMIN`, for a server on loopback that asks for nothing.
    """

    def __init__(self, tokens: Mapping[str, User] | None) -> None:
        self._tokens = tokens

    def authenticate(self, headers: Mapping[str, str]) -> User | None:
        """The user, or None when the request carries no known token."""
        if self._tokens is None:
            return ADMIN
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return self._tokens.get(token.strip()) if scheme.lower() == "bearer" else None

    def user_of(self, token: str) -> User | None:
        """The user a token stands for, as TokenReview asks."""
        return self._tokens.get(token) if self._tokens is not None else None
