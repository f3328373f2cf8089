"""An S3 server on this machine, as a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import obstore
from obstore.store import S3Store

# Objects in an answer of a server that is asked for all: real ones say a thousand.
PAGE = 50
KEYS = {"AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "SENTINEL-OF-A-SECRET"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def s3_server(log: Path) -> Iterator[str]:
    """Give the address of moto's server, which ends with the block."""
    port = free_port()
    with log.open("wb") as stream:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            env=os.environ | {"MOTO_S3_DEFAULT_MAX_KEYS": str(PAGE)}, stdout=stream, stderr=stream,
        )  # fmt: skip
    try:
        endpoint = f"http://127.0.0.1:{port}"
        for _ in range(600):
            assert server.poll() is None, log.read_text()
            try:
                urllib.request.urlopen(f"{endpoint}/moto-api/", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield endpoint
    finally:
        server.terminate()
        server.wait()


class Bucket:
    """A bucket of the server, and the section of a spec that says where it is."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.endpoint, self.name = endpoint, name
        self.storage = {"endpoint": endpoint, "region": "us-east-1"}
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT"), timeout=30).close()
        config: Any = {**self.storage, "access_key_id": "a", "secret_access_key": "b"}
        self.store = S3Store(name, config=config, client_options={"allow_http": True})

    def put(self, key: str, content: bytes | Path) -> str:
        """Write an object, and return its address."""
        obstore.put(self.store, key, content)
        return f"s3://{self.name}/{key}"

    def put_folder(self, folder: Path) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                self.put(path.relative_to(folder).as_posix(), path)

    def publish(self, key: str) -> None:
        """Let everybody read an object."""
        ask = urllib.request.Request(f"{self.endpoint}/{self.name}/{key}?acl", method="PUT")
        ask.add_header("x-amz-acl", "public-read")
        ask.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=a/20200101/us-east-1/s3/aws4_request")
        urllib.request.urlopen(ask, timeout=30).close()

    def delete(self, key: str) -> None:
        obstore.delete(self.store, key)
