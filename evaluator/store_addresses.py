"""Addresses, which are no paths: ``s3://bucket/log``; and secrets, which no address, spec or message holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from evaluator.errors import UsageError

# What a Path makes of an address: two slashes become one.
_AS_PATH = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")


def is_address(text: str) -> bool:
    """Return whether this is an address, and no path.

    >>> is_address("s3://bucket/log.csv"), is_address("logs/day=3.csv")
    (True, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def as_given(place: str | Path) -> str:
    """Return a place as text; an address that was made a path is one again.

    >>> as_given(Path("s3://bucket/log")), as_given(Path("logs/day=3"))
    ('s3://bucket/log', 'logs/day=3')
    """
    return _AS_PATH.sub(r"\1://", str(place)) if isinstance(place, Path) else place


# What object stores are told who asks by, by the scheme of their addresses.
VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_EVERY = "; ".join(f"{variables} for {scheme}://" for scheme, variables in VARIABLES.items())
_KEY = re.compile(
    r"secret|token|passw|access_?key|key_?id|account_?key|sas|connection_?string|credential|signature|service_?account",
    re.IGNORECASE,
)
# One slash is left of an address made a Path; what Azure calls abfss:// has its container there.
_USER = re.compile(r"^(?!abfss?:)[a-z][a-z0-9+.-]+:/+[^/]*@", re.IGNORECASE)
_SIGNED = re.compile(
    r"[?&](x-(amz|goog)-(signature|credential|security-token)|awsaccesskeyid|signature|sig|token)=", re.IGNORECASE
)


def refuse_secret_keys(keys: Iterable[str]) -> None:
    """Raise ValueError if a key of a section is the name of a secret; its value is not repeated."""
    for key in keys:
        if _KEY.search(key):
            raise ValueError(
                f"`{key}` is a secret, and a spec holds none: leave it out, and set the environment ({_EVERY})"
            )


def holds_secret(address: str) -> bool:
    """Return whether an address holds a password, or the signature of a query.

    >>> [holds_secret(text) for text in ("s3://b/day=?/*.csv", "s3://me:pw@b/log.csv", "https://b/log.csv?a=1&sig=x")]
    [False, True, True]
    """
    return bool(_USER.search(address) or _SIGNED.search(address))


def refuse_secret(address: str) -> None:
    """Raise UsageError if an address that a caller gave holds a secret, which is not repeated."""
    if holds_secret(address):
        raise UsageError("The address holds a secret.", remedy=f"leave it out, and set the environment ({_EVERY}).")


def without_secret(address: str) -> str:
    """Return an address, or raise ValueError if it holds a secret, which is not repeated."""
    if holds_secret(address):
        raise ValueError(f"the address holds a secret, and a spec holds none: set the environment ({_EVERY})")
    return address
