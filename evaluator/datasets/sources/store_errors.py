"""What an object store says where it gives no rows, in one line without what it repeats of credentials."""

from __future__ import annotations

import re

from evaluator.datasets.secrets import VARIABLES
from evaluator.errors import SourceError

# What the libraries call a setting of [source.storage], by scheme; in capitals, the environment. Both know these names.
SETTINGS = {
    "s3": {"endpoint": "aws_endpoint_url", "region": "aws_region", "anonymous": "aws_skip_signature"},
    "gs": {"endpoint": "google_base_url", "anonymous": "google_skip_signature"},
    "az": {
        "endpoint": "azure_endpoint",
        "account": "azure_storage_account_name",
        "anonymous": "azure_skip_signature",
    },
}

# What those who ask are told, by what object_store and the stores say: the first that fits counts. Their own words are
# long, and repeat the names of keys and signed addresses.
_NO_BUCKET = r"NoSuchBucket|ContainerNotFound|specified bucket does not exist"
_EXPIRED = r"ExpiredToken|RequestTimeTooSkewed|[Tt]oken (has|is) expired|RequestExpired"
_ABSENT = (
    r"latest/(api/token|meta-data)|169\.254\.1(69\.254|70)|metadata\.google|computeMetadata|"
    r"[Mm]issing ?(account|credential|config)"
)
_REGION = (
    r"PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraint|[Rr]edirect without LOCATION|: 301 "
)
_DENIED = (
    r"\b40[13] |AccessDenied|Forbidden|SignatureDoesNotMatch|InvalidAccessKeyId|AuthenticationFailed|[Pp]ermission"
)
_SILENT = (
    r"error sending request|[Dd]ns error|[Cc]onnection (refused|reset|closed)|timed out|[Tt]imeout|"
    r"error decoding response body|error reading a body|[Ii]ncomplete|HTTP error"
)
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")


def is_of_store(error: BaseException) -> bool:
    """Return whether an error of Polars is one of an object store, and not of what it gave."""
    return "object-store error" in str(error) or "Generic " in str(error)


def explain(
    error: BaseException, address: str, endpoint: str | None, *, of_spec: bool = True, to: str = "read"
) -> SourceError:
    """Return the error that says in one line why a store did not give an object.

    Parameters
    ----------
    error
        What obstore or Polars raised.
    address, endpoint
        Address of the object, and of the store where the spec gives one.
    of_spec
        Whether a spec says where the store answers, and not the environment.
    to
        What was to be done with the object: ``read`` or ``write``.
    """
    said = str(error)
    scheme, bucket = address.split("/")[0].rstrip(":"), address.split("/")[2]
    variables = VARIABLES[scheme]
    where = f" at {endpoint}" if endpoint else ""
    status, code = _STATUS.search(said), _CODE.search(said)
    words = " ".join(found.group(1) for found in (status, code) if found)
    words = f" ({words})" if words else ""

    def setting(name: str) -> str:
        return f"storage.{name}" if of_spec else SETTINGS[scheme].get(name, name).upper()

    if re.search(_NO_BUCKET, said):
        return SourceError(
            f"{address}: there is no bucket {bucket!r}{where}.", hint=f"check its name, and {setting('endpoint')}."
        )
    if re.search(_EXPIRED, said):
        return SourceError(
            f"{address}: the credentials of the environment have expired{words}.", hint=f"set new ones: {variables}."
        )
    if re.search(_ABSENT, said):
        return SourceError(
            f"{address}: the environment holds no credentials.",
            hint=f"set {variables}, or {setting('anonymous')} = true for a public bucket.",
        )
    if re.search(_REGION, said):
        return SourceError(
            f"{address}: the bucket is in another region{words}.",
            hint=f"set {'storage.region, or ' if of_spec else ''}AWS_REGION.",
        )
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{address}: there is no such object{where}.", hint="check its name.")
    if isinstance(error, PermissionError) or re.search(_DENIED, said):
        return SourceError(
            f"{address}: no permission to {to} it{words}.",
            hint=f"check {variables}, and what they may {to}"
            + (f"; {setting('anonymous')} = true reads public buckets." if to == "read" else "."),
        )
    if "empty path segment" in said or "InvalidPath" in said:
        return SourceError(
            f"{address}: the name of an object there has an empty folder (//), which cannot be read.",
            hint="rename it, or name a folder without it.",
        )
    if status is None and re.search(_SILENT, said):
        return SourceError(
            f"{address}: the object store{where} does not answer.",
            hint=f"check the network, and {setting('endpoint')} and {setting('region')}.",
        )
    return SourceError(
        f"{address}: the object store{where} failed{words}.", hint=f"try again later, or check {setting('endpoint')}."
    )
