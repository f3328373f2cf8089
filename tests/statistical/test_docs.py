"""The pages of the docs whose blocks take long run as pasted, and the two clocks are as their page says."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from tests.bench import clocks
from tests.packaging.test_readme_output import DOCS, LONG, ROOT, paste


@pytest.mark.parametrize("file", LONG, ids=lambda file: str(file.relative_to(ROOT)))
def test_blocks_run_as_pasted_and_print_what_is_shown(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paste(file)


# Of the page's runs: a twentieth.
RUNS, REPLAYS = 200, 100


def test_the_two_clocks_are_as_their_page_says() -> None:
    """The first runs of those that the page shows give its means and standard errors.

    The mean of n of N runs is off from that of all by sqrt(s²/n - s²/N), and the standard deviation s of n runs by
    s / sqrt(2 (n - 1)). What is printed is rounded to a tenth.
    """
    page = (DOCS / "why" / "two-clocks.md").read_text(encoding="utf-8")
    for name, (_, regret, error) in clocks.measured(RUNS, REPLAYS).items():
        shown = re.search(rf"^{re.escape(name)} +([\d.]+) ± ([\d.]+)", page, re.M)
        assert shown is not None, name
        of_all, error_of_all = float(shown[1]), float(shown[2])
        n, of = (RUNS, clocks.RUNS) if name == clocks.LIVE else (REPLAYS, clocks.REPLAYS)
        assert abs(regret[-1] - of_all) < 4 * error * math.sqrt(1 - n / of) + 0.05, name
        spread = error * math.sqrt(n / of)
        assert abs(spread - error_of_all) < 4 * spread / math.sqrt(2 * (n - 1)) + 0.05, name


def test_shares_of_the_two_clocks_follow_from_their_means() -> None:
    page = (DOCS / "why" / "two-clocks.md").read_text(encoding="utf-8")
    means = [float(x) for x in re.findall(r"^(?:live|replayed, .*?) +([\d.]+) ±", page, re.M)]
    shares = [float(x) / 100 for x in re.findall(r"([\d.]+)% too good$", page, re.M)]
    # Means and shares are rounded, to a tenth and to a tenth of a percent.
    rounding = 0.1 / means[0] + 0.0005
    assert [1 - mean / means[0] for mean in means[1:]] == pytest.approx(shares, abs=rounding)
