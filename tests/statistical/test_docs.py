"""The pages of the docs whose commands take long show what these print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.test_readme_output import LONG, compare


@pytest.mark.parametrize("file", LONG, ids=lambda file: file.stem)
def test_consoles_show_what_the_commands_print(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compare(file, tmp_path)
