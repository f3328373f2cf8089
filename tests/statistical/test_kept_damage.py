"""No damage to a kept result is taken up: every byte of its file, one bit turned, and its every length."""

from __future__ import annotations

from pathlib import Path

from evaluator.arguments import as_description
from evaluator.comparisons.kept import FoundResults, KeptResults
from evaluator.comparisons.run import plan_comparison
from evaluator.replays.options import ReplayOptions
from evaluator.replays.run import execute_all
from tests.logs import linear_log


def test_no_flipped_bit_and_no_cut_passes(tmp_path: Path) -> None:
    log = linear_log(500, n_actions=2, dimension=2, mean_delay=10.0, seed=1)
    policies = [as_description("random")]
    plans = plan_comparison(log, policies, [50], ReplayOptions(horizon=10))
    kept = KeptResults(tmp_path, policies)
    assert kept.find(plans, log) == FoundResults({}, 0, 0)
    kept.keep(plans[0], execute_all(plans)[0])
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for at in range(len(whole)):
        for damaged in (whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :], whole[:at]):
            file.write_bytes(damaged)
            assert kept.find(plans, log) == FoundResults({}, 1, 0), at
    file.write_bytes(whole)
    assert list(kept.find(plans, log).results) == [0]
