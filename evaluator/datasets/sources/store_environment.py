"""What the environment says of object stores, refused where the libraries that ask them would panic at it."""

from __future__ import annotations

import os
import re

from evaluator.errors import SourceError

# Where stores answer, by the scheme of their addresses.
ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
}
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
    """Raise if a variable that says where a store answers, or who asks, is no such thing; its value is not repeated.

    Parameters
    ----------
    scheme
        Scheme of the store's addresses.
    of_spec
        Whether a spec says where it answers, so that the environment need not.

    Raises
    ------
    SourceError
        An endpoint is no address, or a name or key has blanks or breaks at its ends, as files of secrets leave them.
    """
    for name in ENDPOINTS[scheme]:
        value = os.environ.get(name)
        if value is not None and not of_spec and not _URL.fullmatch(value):
            what = "is empty" if not value else "is no address of a store"
            raise SourceError(
                f"The variable {name} of the environment {what}.",
                hint="unset it, or write it as https://minio.example.org.",
            )
    for name in _IN_REQUESTS[scheme]:
        value = os.environ.get(name, "")
        if value != value.strip() or not value.isprintable():
            raise SourceError(
                f"The variable {name} of the environment has a blank or a line break at its end, or within.",
                hint="set it anew without: the break that ends a file of secrets is often left in.",
            )
