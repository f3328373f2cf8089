"""Who is no part of a cluster on this machine reaches nothing of it; what one without TLS is open to."""

from __future__ import annotations

import asyncio
import pickle
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="workers need the extra `cluster`")
pytest.importorskip("cryptography", reason="makes certificates")
import dask
import distributed
import psutil
from distributed.comm import connect

from evaluator.jobs.addresses import workers_at

PATIENCE = 5


def listening() -> set[tuple[str, int]]:
    """Return where the processes of this tree listen on a network."""
    me = psutil.Process()
    return {
        (found.laddr.ip, found.laddr.port)
        for process in (me, *me.children(recursive=True))
        for found in process.net_connections("inet")
        if found.status == psutil.CONN_LISTEN
    }


def told_by(address: str, file: Path, **security: Any) -> str:
    """Call as Dask does, and have a file touched there; return what answers calls itself, nothing if nobody does."""

    async def called() -> str:
        comm = await connect(address, timeout=PATIENCE, **security)
        try:
            await comm.write({"op": "identity", "reply": True})
            kind = str((await comm.read())["type"])
            run = "run_function" if "Scheduler" in kind else "run"
            await comm.write({"op": run, "function": pickle.dumps(Path.touch), "args": pickle.dumps((file,))})
            await comm.read()
            return kind
        finally:
            comm.abort()

    try:
        return asyncio.run(asyncio.wait_for(called(), PATIENCE))
    except (OSError, TimeoutError):  # also what Dask raises when a call is ended
        return ""


def page_at(port: int, context: ssl.SSLContext | None = None) -> bytes:
    """Return what answers who asks for a page, with TLS or without."""
    try:
        plain = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        with plain, plain if context is None else context.wrap_socket(plain) as call:
            call.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            return call.recv(1000)
    except OSError:  # an alert of TLS; or the end of the call
        return b""


def strangers() -> list[ssl.SSLContext]:
    """Return callers who take whoever answers: one without a certificate, one with a certificate made elsewhere."""
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody.check_hostname = False
    other = distributed.Security.temporary().get_connection_args("client")["ssl_context"]
    nobody.verify_mode = other.verify_mode = ssl.CERT_NONE
    return [nobody, other]


def assert_closed(port: int, file: Path) -> None:
    """Fail if a stranger gets an answer at a port, or has a file touched."""
    assert told_by(f"tcp://127.0.0.1:{port}", file) == ""
    # A caller without TLS is told that TLS is spoken (an alert, in seven bytes), or nothing.
    assert page_at(port)[7:] == b""
    for context in strangers():
        assert told_by(f"tls://127.0.0.1:{port}", file, ssl_context=context) == ""
        assert page_at(port, context) == b""
    assert not file.exists()


def test_a_local_cluster_answers_nobody_else() -> None:
    before = listening()
    with workers_at("local:1", print) as executor:
        assert list(executor.map(abs, [-1, 2])) == [1, 2]
        assert listening() == before
        # The socket at which the command asks for processes lies where nobody else can reach it.
        assert stat.S_IMODE(Path(util.get_temp_dir()).stat().st_mode) == 0o700


@contextmanager
def run_by_others(folder: Path, environment: dict[str, str]) -> Iterator[tuple[list[int], list[int]]]:
    """Give the ports of a scheduler and a worker, and those of their pages, as Dask starts them in an environment.

    Both are threads of this process, and find the environment in the settings of Dask, as what runs in the block does.
    """
    before = listening()
    settings = dask.config.merge(dask.config.config, dask.config.collect_env(environment))
    with (
        dask.config.set(settings | {"temporary-directory": str(folder)}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0",
            protocol="tls" if environment else "tcp", scheduler_kwargs={"dashboard": False},
        ) as cluster,
    ):  # fmt: skip
        addresses = (cluster.scheduler_address, *cluster.scheduler.workers)
        ports = [int(address.rpartition(":")[2]) for address in addresses]
        yield ports, [port for _, port in listening() - before if port not in ports]


def test_without_tls_whoever_reaches_a_port_runs_code_there(tmp_path: Path) -> None:
    with run_by_others(tmp_path, {}) as (ports, pages):
        assert [told_by(f"tcp://127.0.0.1:{port}", tmp_path / str(port)) for port in ports] == ["Scheduler", "Worker"]
        assert all((tmp_path / str(port)).exists() for port in ports)
        assert [b"200 OK" in page_at(port) for port in pages] == [True, True]  # though no dashboard is asked for


def test_with_the_tls_of_dask_only_who_has_the_certificate_does(tmp_path: Path) -> None:
    made = distributed.Security.temporary()
    for name, text in (("cert.pem", made.tls_ca_file), ("key.pem", made.tls_client_key)):
        (tmp_path / name).write_text(text)
    environment = {
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(tmp_path / "cert.pem"),
    }
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        environment[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = str(tmp_path / "cert.pem")
        environment[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = str(tmp_path / "key.pem")
    with run_by_others(tmp_path, environment) as (ports, pages):
        for port in ports:
            assert_closed(port, tmp_path / "touched")
        with workers_at(f"tls://127.0.0.1:{ports[0]}", print) as executor:
            assert list(executor.map(abs, [-1, 2])) == [1, 2]
        assert [b"200 OK" in page_at(port) for port in pages] == [True, True]  # they ask for no certificate
