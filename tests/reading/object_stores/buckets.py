"""Logs for buckets, and servers that fail."""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evaluator.log import Log
from tests.reading.object_stores.server import KEYS, Bucket
from tests.reading.sources import write_spec

N = 300
SECRET = KEYS["AWS_SECRET_ACCESS_KEY"]


def displays(n: int = N, start: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(start)
    t = start + np.arange(n)
    sold = np.where(rng.random(n) < 0.3, t + rng.integers(0, 50, n), -1)
    ads = [("a", "b", "c")[k] for k in rng.integers(0, 3, n)]
    return pl.DataFrame({"t": t, "ad": ads, "sold": sold, "other": ["x" * 50] * n}).with_columns(
        pl.when(pl.col("sold") >= 0).then("sold").alias("sold")
    )


def write(frame: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".ipc":
        frame.write_ipc(path)
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    else:
        text = frame.write_csv(separator="\t" if ".tsv" in path.name else ",").encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def spec_of(folder: Path, bucket: Bucket, files: str, **sections: Any) -> Path:
    """Write the spec of a log in a bucket."""
    folder.mkdir(parents=True, exist_ok=True)
    source = {"files": f"s3://{bucket.name}/{files}", "storage": bucket.storage, **sections.pop("source", {})}
    return write_spec(folder, source=source, **sections)


def same(one: Log, two: Log) -> None:
    assert one.displays.equals(two.displays)
    assert one.conversions.equals(two.conversions)
    assert (one.labels, one.meta.counts, one.meta.notes) == (two.labels, two.meta.counts, two.meta.notes)


@contextmanager
def answering(status: int, code: str, *, seconds: float = 0.0) -> Iterator[str]:
    """Give the address of a server that gives every question the same answer, with the secret among its words."""

    stopped = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stopped.wait(seconds)
            body = f"<Error><Code>{code}</Code><Message>{SECRET} a-key</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            with suppress(OSError):  # who asked has left
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        do_HEAD = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with serving(Handler) as address:
        try:
            yield address
        finally:
            stopped.set()


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Give the address of a server that answers as `handler` does."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
