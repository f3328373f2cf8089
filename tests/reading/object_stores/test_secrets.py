"""A spec or an address that holds a secret is refused, and no message repeats it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.datasets import load
from evaluator.errors import SpecError, UsageError
from evaluator.reading.spec import parse_spec
from tests.cli.runs import evaluate
from tests.reading.object_stores.buckets import SECRET
from tests.reading.sources import spec_data, write_spec


@pytest.mark.parametrize(
    "key",
    ["secret", "secret_access_key", "access_key_id", "aws_access_key_id", "token", "session_token", "password",
     "account_key", "sas_key", "connection_string", "credentials", "service_account_key"],
)  # fmt: skip
def test_a_spec_that_holds_a_secret_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(SpecError) as told:
        parse_spec(spec_data(source={"files": "s3://b/log.csv", "storage": {key: SECRET}}))
    assert f"`{key}` is a secret, and a spec holds none" in str(told.value)
    assert "AWS_SECRET_ACCESS_KEY" in str(told.value)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    "address",
    [f"s3://me:{SECRET}@b/log.csv", f"https://b.s3.amazonaws.com/log.csv?X-Amz-Signature={SECRET}",
     f"az://b/log.csv?sv=1&sig={SECRET}"],
)  # fmt: skip
def test_an_address_that_holds_a_secret_is_refused_without_repeating_it(address: str, tmp_path: Path) -> None:
    for source in ({"files": address}, {"files": "s3://b/log.csv", "storage": {"endpoint": address}}):
        with pytest.raises(SpecError, match="the address holds a secret, and a spec holds none") as told:
            parse_spec(spec_data(source=source))
        assert SECRET not in str(told.value)
    with pytest.raises(UsageError, match="address holds a secret") as given:
        load(write_spec(tmp_path), path=address)
    assert SECRET not in str(given.value)
    show_at = ["datasets", "show", str(write_spec(tmp_path)), "--path"]
    for words in (["datasets", "validate"], ["datasets", "init"], show_at, ["delays"]):
        run = evaluate(*words, address)
        assert run.code == 2
        assert SECRET not in run.out + run.err
    with pytest.raises(UsageError, match="address holds a secret"):
        load(write_spec(tmp_path), path=Path(address))
    with pytest.raises(SpecError) as odd:
        parse_spec(spec_data(source={"files": "s3://b/log.csv", "storage": SECRET}))  # type: ignore[dict-item]
    assert SECRET not in str(odd.value)
