"""What the environment says of object stores: where credentials may go, and what would make libraries panic."""

from __future__ import annotations

import os
import re
from urllib.parse import SplitResult, urlsplit

from evaluator.datasets.spec_sections import Storage
from evaluator.errors import SourceError

# Where stores answer, by the scheme of their addresses.
ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
}
# Variable of the environment that lists other addresses that a spec may send credentials to.
ALLOWED_ENDPOINTS = "EVALUATE_ALLOW_ENDPOINTS"
# Hosts of the providers themselves: where a name ends as theirs do, others may answer.
_OWN = {
    "s3": re.compile(r"(.+\.)?s3([.-](fips|dualstack|[a-z]{2}(-[a-z]+)+-\d))*\.amazonaws\.com(\.cn)?"),
    "gs": re.compile(r"storage\.googleapis\.com"),
    "az": re.compile(r"[a-z0-9-]+\.(blob|dfs)\.core\.(windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)"),
}
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
# What becomes a part of requests. Keys in JSON, which may have lines, are not among them.
_IN_REQUESTS = {
    "s3": (
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_TOKEN", "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "az": (
        "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_TOKEN", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID",
    ),
}  # fmt: skip
_URL = re.compile(r"https?://[^\s/?#]+[^\s]*")


def refuse_unusable_environment(scheme: str, *, of_spec: bool) -> None:
    """Raise if a variable of the environment for a store or its keys is unusable; its value is not repeated.

    Where a spec says where the store answers (`of_spec`), the environment need not. Raises SourceError if an endpoint
    is no address, or if a name or key has blanks or breaks at its ends, as files of secrets leave them.
    """
    for name in ENDPOINTS[scheme]:
        value = os.environ.get(name)
        if value is not None and not of_spec and not _URL.fullmatch(value):
            what = "is empty" if not value else "is no address of a store"
            raise SourceError(
                f"The variable {name} of the environment {what}.",
                remedy="unset it, or write it as https://minio.example.org.",
            )
    for name in _IN_REQUESTS[scheme]:
        value = os.environ.get(name, "")
        if value != value.strip() or not value.isprintable():
            raise SourceError(
                f"The variable {name} of the environment has a blank or a line break at its end, or within.",
                remedy="set it anew without: the break that ends a file of secrets is often left in.",
            )


def refuse_unlisted_endpoint(scheme: str, storage: Storage) -> None:
    """Raise if a spec would send the credentials of the environment where their owner does not.

    A spec may come from a stranger: its endpoint gets signatures, tokens and keys. It may be the provider's own, what
    the environment says itself, or one that `ALLOWED_ENDPOINTS` lists; without credentials (``anonymous``) any other,
    but for plain http beyond this machine. Raises SourceError if the endpoint is none of these.
    """
    if storage.endpoint is None:
        return
    asked = urlsplit(storage.endpoint)
    host, secure = asked.hostname or "", asked.scheme == "https"
    if storage.anonymous and (secure or _LOOPBACK.fullmatch(host)):
        return
    listed = [*os.environ.get(ALLOWED_ENDPOINTS, "").split(","), *(os.environ.get(of, "") for of in ENDPOINTS[scheme])]
    if (secure and _OWN[scheme].fullmatch(host)) or any(_covers(urlsplit(one.strip()), asked) for one in listed):
        return
    why = "would be asked by plain http" if storage.anonymous else "would get the credentials of the environment"
    raise SourceError(
        f"storage.endpoint {asked.scheme}://{asked.netloc} {why}, and is not the provider's own.",
        remedy=f"if you trust it, set {ALLOWED_ENDPOINTS}={asked.scheme}://{asked.netloc}"
        + ("." if storage.anonymous else ", or anonymous = true for a public bucket."),
    )


def _covers(listed: SplitResult, asked: SplitResult) -> bool:
    """Whether an address of the list is the one asked for; without a port it is one with any."""
    same = bool(listed.hostname) and (listed.scheme, listed.hostname) == (asked.scheme, asked.hostname)
    return same and (listed.port is None or listed.port == asked.port)
