"""Object stores: which an address names, how it is asked, and what it lists.

What the environment says of them is looked at first: where credentials may go, and what would make libraries panic.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from evaluator.errors import EvaluatorError, OutputExistsError, SourceError
from evaluator.escape import shortened
from evaluator.log.log_files import RemoteFile
from evaluator.store_addresses import VARIABLES, refuse_secret

if TYPE_CHECKING:
    from evaluator.reading.spec_sections import Storage

# A store that does not answer is told within some seconds: object_store would try for three minutes.
RETRIES, SECONDS = 3, 10
# How long it may say nothing. As a whole an object may take a day: by itself object_store would cut it at 30 seconds.
SILENCE, WHOLE = "8s", "1d"
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


@dataclass(frozen=True)
class StoredObject:
    """An object as a store lists it.

    The `tag` changes with the content: the ETag, or where a store has none the time of the last change; `size` is in
    bytes.
    """

    key: str
    tag: str
    size: int

    @property
    def path(self) -> PurePosixPath:
        """Its key as a path."""
        return PurePosixPath(self.key)


@dataclass(frozen=True)
class Store:
    """A bucket (of Azure: a container) of an object store; credentials come from the environment.

    `storage` is the section of the spec that says where the store answers; None where the environment does.
    """

    scheme: str
    bucket: str
    storage: Storage | None = None

    def url(self, key: str) -> str:
        """Return the address of an object."""
        return f"{self.scheme}://{self.bucket}/{key}"

    @property
    def polars_options(self) -> dict[str, Any]:
        """What Polars is told about the store."""
        http = {"allow_http": "true"} if self._allows_http else {}
        retries = {"max_retries": RETRIES, "retry_timeout_ms": SECONDS * 1000, "read_timeout": SILENCE}
        return {**self._settings, **http, **retries}

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects in a folder, the empty ones that stand for folders left out.

        Raises SourceError if the store does not list it, or lists what is elsewhere: by such a name something else
        would be read.
        """
        import obstore

        client = self._client
        with self._explained(prefix):
            for page in obstore.list(client, prefix=prefix or None):
                for meta in page:
                    if prefix and not f"{meta['path']}/".startswith(f"{prefix.rstrip('/')}/"):
                        raise SourceError(
                            f"{self.url(prefix)}: the store lists {shortened(meta['path'])}, which is not in it.",
                            remedy="check the endpoint: no store of this kind answers so.",
                        )
                    if meta["size"] or PurePosixPath(meta["path"]).suffix:
                        yield _object(meta)

    def head(self, key: str) -> StoredObject | None:
        """Return the present state of an object, or None if there is no such object."""
        import obstore

        client = self._client
        with self._explained(key):
            try:
                return _object(obstore.head(client, key))
            except FileNotFoundError:
                return None

    def get(self, key: str) -> tuple[StoredObject, Iterator[memoryview]] | None:
        """Return an object and an iterator of its bytes, piece by piece; None if there is no such object."""
        import obstore

        client = self._client
        with self._explained(key):
            try:
                result = obstore.get(client, key)
            except FileNotFoundError:
                return None
            return _object(result.meta), self._pieces(key, result)

    def read(self, listed: StoredObject, start: int, end: int) -> bytes:
        """Return the bytes of an object, as it was listed, from one place to before another.

        Raises SourceError if it is another one now, or if the store does not give it.
        """
        import obstore
        from obstore.exceptions import BaseError

        client = self._client
        with self._explained(listed.key):
            try:
                result = obstore.get(client, listed.key, options={"range": (start, end)})
                if _object(result.meta) == listed:
                    return bytes(result.buffer())
            except (FileNotFoundError, BaseError):
                if self.head(listed.key) == listed:  # else it may have no such range any more
                    raise
        changed = f"{self.url(listed.key)}: it changed since the log was opened."
        raise SourceError(changed, remedy="load the log again.")

    def write(self, key: str, content: Path | bytes, *, new: bool = False) -> str:
        """Write an object and return its tag; with `new`, refuse to write over an object.

        Raises OutputExistsError if a new one is there, and SourceError if the store does not take it.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        client = self._client
        with self._explained(key, to="write"):
            try:
                return _tag(obstore.put(client, key, content, mode="create" if new else "overwrite"))
            except AlreadyExistsError:
                raise OutputExistsError(f"Output {self.url(key)} exists.", remedy="name another folder.") from None

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects."""
        import obstore

        client = self._client
        for key in keys:
            with self._explained(key, to="write"):
                obstore.delete(client, key)

    def _pieces(self, key: str, result: Any) -> Iterator[memoryview]:
        with self._explained(key):
            for piece in result.stream():
                yield memoryview(piece)

    def explained(self, error: BaseException, name: str, *, to: str = "read") -> SourceError:
        """Return the error that says in one line why an object, by its address, was not given, or not taken."""
        endpoint = None if self.storage is None else self.storage.endpoint
        return explain(error, name, endpoint, of_spec=self.storage is not None, to=to)

    @contextmanager
    def _explained(self, key: str, *, to: str = "read") -> Iterator[None]:
        import obstore.exceptions

        try:
            yield
        except EvaluatorError:
            raise
        except (obstore.exceptions.BaseError, OSError, ValueError) as error:
            raise self.explained(error, self.url(key), to=to) from None

    @property
    def _settings(self) -> dict[str, str]:
        said = {} if self.storage is None else self.storage.model_dump(exclude_none=True)
        given = {key: value for key, value in said.items() if value is not False}
        if self.scheme == "s3":  # else Polars asks Amazon which region has the bucket, and obstore does not
            here = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
            given.setdefault("region", here)
        names = SETTINGS[self.scheme]
        for key in given:
            if key not in names:
                raise SourceError(
                    f"`storage.{key}` does not apply to {self.scheme}://.",
                    remedy=f"leave it out; {', '.join(names)} do.",
                )
        return {names[key]: str(value).lower() if value is True else value for key, value in given.items()}

    @property
    def _allows_http(self) -> bool:
        own = None if self.storage is None else self.storage.endpoint
        asked = [own] if own else [os.environ.get(name) for name in ENDPOINTS["s3"]]
        return any((endpoint or "").startswith("http://") for endpoint in asked)

    @cached_property
    def _client(self) -> Any:
        import obstore.exceptions
        from obstore import store

        make: dict[str, Any] = {"s3": store.S3Store, "gs": store.GCSStore, "az": store.AzureStore}
        settings = self._settings
        client = {"connect_timeout": "5s", "read_timeout": SILENCE, "timeout": WHOLE}
        retries = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=SECONDS)}
        try:
            return make[self.scheme](
                self.bucket,
                config=settings,
                client_options={"allow_http": self._allows_http, **client},
                retry_config=retries,
            )
        except (obstore.exceptions.BaseError, OSError, ValueError):
            raise SourceError(
                f"{self.url('')}: what is said of its store cannot be used.",
                remedy=f"check {VARIABLES[self.scheme]}{'' if self.storage is None else ', and [source.storage]'}.",
            ) from None


@dataclass(frozen=True)
class ObjectFile(RemoteFile):
    """An object as it was listed.

    `listed` is the object as it was listed; None where there was none of this name.
    """

    store: Store
    key: str
    listed: StoredObject | None

    def __str__(self) -> str:
        return self.store.url(self.key)

    @property
    def name(self) -> str:
        """Last part of its key."""
        return self.key.rsplit("/", 1)[-1]

    @property
    def size(self) -> int:
        """Number of bytes; FileNotFoundError where there was no such object."""
        return self._listed.size

    def state(self) -> object:
        """Return its ETag and size as listed, by which every read of it goes; None where it is not there."""
        return self.listed

    def read(self, start: int, end: int) -> bytes:
        """Return its bytes from one place to before another."""
        return self.store.read(self._listed, start, end)

    @property
    def _listed(self) -> StoredObject:
        if self.listed is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.listed


def open_store(address: str, storage: Storage | None) -> tuple[Store, str]:
    """Return the store of an address, and the key, glob or folder within it.

    Without a `storage` the environment says where it answers. Raises SourceError if it is no address of an object
    store, or if the environment says of it what cannot be used; UsageError if it holds a secret.
    """
    refuse_secret(address)
    scheme, _, rest = address.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in VARIABLES or not bucket:
        known = ", ".join(f"{name}://bucket/path" for name in VARIABLES)
        raise SourceError(f"{address}: no address of an object store.", remedy=f"write {known}.")
    if storage is not None:
        refuse_unlisted_endpoint(scheme, storage)
    refuse_unusable_environment(scheme, of_spec=storage is not None and storage.endpoint is not None)
    if not {".", ".."}.isdisjoint(key.split("/")):
        raise SourceError(f"{address}: no store has a folder . or .. within an address.", remedy="write it without.")
    return Store(scheme, bucket, storage), key


def _object(meta: Any) -> StoredObject:
    # Azure quotes the ETag of an object, and not those that it lists.
    return StoredObject(meta["path"], _tag(meta) or meta["last_modified"].isoformat(), meta["size"])


def _tag(meta: Any) -> str:
    return (meta["e_tag"] or "").strip('"')


def is_of_store(error: BaseException) -> bool:
    """Return whether an error of Polars is one of an object store, and not of what it gave."""
    return "object-store error" in str(error) or "Generic " in str(error)


def explain(
    error: BaseException, address: str, endpoint: str | None, *, of_spec: bool = True, to: str = "read"
) -> SourceError:
    """Return the error that says in one line why a store did not give an object.

    `address` and `endpoint` are of the object, and of the store where the spec gives one (`of_spec`); ``read`` or
    ``write`` is what was to be done with the object.
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
            f"{address}: there is no bucket {bucket!r}{where}.", remedy=f"check its name, and {setting('endpoint')}."
        )
    if re.search(_EXPIRED, said):
        return SourceError(
            f"{address}: the credentials of the environment have expired{words}.", remedy=f"set new ones: {variables}."
        )
    if re.search(_ABSENT, said):
        return SourceError(
            f"{address}: the environment holds no credentials.",
            remedy=f"set {variables}, or {setting('anonymous')} = true for a public bucket.",
        )
    if re.search(_REGION, said):
        return SourceError(
            f"{address}: the bucket is in another region{words}.",
            remedy=f"set {'storage.region, or ' if of_spec else ''}AWS_REGION.",
        )
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{address}: there is no such object{where}.", remedy="check its name.")
    if isinstance(error, PermissionError) or re.search(_DENIED, said):
        return SourceError(
            f"{address}: no permission to {to} it{words}.",
            remedy=f"check {variables}, and what they may {to}"
            + (f"; {setting('anonymous')} = true reads public buckets." if to == "read" else "."),
        )
    if "empty path segment" in said or "InvalidPath" in said:
        return SourceError(
            f"{address}: the name of an object there has an empty folder (//), which cannot be read.",
            remedy="rename it, or name a folder without it.",
        )
    if status is None and re.search(_SILENT, said):
        return SourceError(
            f"{address}: the object store{where} does not answer.",
            remedy=f"check the network, and {setting('endpoint')} and {setting('region')}.",
        )
    return SourceError(
        f"{address}: the object store{where} failed{words}.", remedy=f"try again later, or check {setting('endpoint')}."
    )


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
