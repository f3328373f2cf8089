"""A server on this machine that speaks S3, for tests of what is read from object stores."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import Request, urlopen

# What the store's clients find in the environment: the server takes any, but none of them may look elsewhere.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}  # fmt: skip
BUCKET = "logs"


@contextmanager
def s3_server() -> Iterator[str]:
    """Give the address of a server that is up, and holds the empty bucket `BUCKET`, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        _make_bucket(address, server)
        yield address
    finally:
        server.terminate()
        server.wait()


def _make_bucket(address: str, server: subprocess.Popen[bytes]) -> None:
    """Make the bucket as soon as the server answers."""
    for _ in range(600):
        try:
            with urlopen(Request(f"{address}/{BUCKET}", method="PUT", headers={"Authorization": "AWS key:x"})):
                return
        except URLError:
            assert server.poll() is None, "the server has ended"
            time.sleep(0.1)
    raise TimeoutError(address)
