"""What is no file is refused in one line wherever a file is named: a pipe has no end, and neither have devices."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluator.comparisons.study_file import read_study
from evaluator.errors import SourceError, SpecError
from evaluator.input_files import NotRegularError, open_regular, refuse_irregular
from evaluator.reading.sources.files import find_files
from evaluator.reading.spec import read_spec
from evaluator.reading.spec_sections import Source
from evaluator.replays.learned.policy import load_policy
from evaluator.worlds.scenarios.problem import delay_law
from evaluator.worlds.scenarios.scenario import Delay

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path / "pipe.csv"


def test_a_study(pipe: Path) -> None:
    with pytest.raises(SourceError, match=r"pipe\.csv: no study can be read there: it is no regular file\."):
        read_study(pipe)


def test_a_spec(pipe: Path) -> None:
    with pytest.raises(SpecError, match=r"pipe\.csv: cannot be read \(it is no regular file\)\."):
        read_spec(pipe)


def test_delays_of_a_scenario(pipe: Path) -> None:
    with pytest.raises(SourceError, match=r"pipe\.csv is not a table of delays: it is no regular file\."):
        delay_law(Delay(family="empirical", file=pipe.name), pipe.parent)


def test_a_policy(pipe: Path) -> None:
    with pytest.raises(SourceError, match=r"No policy file"):
        load_policy(pipe)


def test_data(pipe: Path) -> None:
    for found in (pipe, pipe.parent, pipe.parent / "*.csv"):
        with pytest.raises(SourceError, match="No file matches"):
            find_files(Source(files="pipe.csv"), pipe.parent, override=found)


def test_devices_and_folders(tmp_path: Path) -> None:
    with pytest.raises(NotRegularError):
        refuse_irregular(Path("/dev/zero"))
    with pytest.raises(IsADirectoryError):
        refuse_irregular(tmp_path)


def test_a_link_is_followed_unless_it_is_not_to_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"said")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"said"
    with pytest.raises(OSError, match="symbolic link"), open_regular(tmp_path / "link", follow=False):
        pass
