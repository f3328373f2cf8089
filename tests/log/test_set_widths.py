"""Sets of eligible actions around every boundary of bytes and words, wherever a command works on their bits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import evaluator
from evaluator.api import plan
from evaluator.engine import log_replay as engine
from evaluator.log import Log
from tests.logs import build_log

WIDTHS = (7, 8, 9, 12, 63, 64, 65, 130, 1_030)
N, MEMBERS = 4_000, 5
Truths = npt.NDArray[np.bool_]


@cache
def logged(n_actions: int) -> tuple[Log, Truths]:
    """Return a log whose displays have one to five eligible actions of many, of which two are never shown."""
    rng = np.random.default_rng(n_actions)
    sets = np.zeros((N, n_actions), np.bool_)
    for row, size in zip(sets, rng.integers(1, MEMBERS, N, endpoint=True), strict=True):
        row[rng.choice(n_actions, size, replace=False)] = True
    unseen = [0, n_actions - 1]
    sets[np.arange(N), rng.integers(1, n_actions - 1, N)] |= ~sets[:, 1:-1].any(axis=1)
    shown = np.where(sets, rng.random(sets.shape), 0.0)
    shown[:, unseen] = 0.0
    action = shown.argmax(axis=1)
    among = np.delete(sets, unseen, axis=1).sum(axis=1)
    converts = np.flatnonzero(rng.random(N) < 0.3)
    log = build_log(
        time=np.arange(N), action=action, propensity=1.0 / among, eligible=sets, n_actions=n_actions,
        context=rng.normal(size=(N, 5)), conversion_display=converts, conversion_time=converts + 3,
        observed_until=N + 10, attribution_window=10,
    )  # fmt: skip
    return log, sets


@pytest.mark.parametrize("n_actions", WIDTHS)
def test_a_check_counts_what_a_loop_over_displays_counts(n_actions: int) -> None:
    log, sets = logged(n_actions)
    found = evaluator.check(log)["eligible actions"]
    assert found.verdict == "warn"  # of the two that are never shown
    numbers = found.numbers
    assert numbers["mean_eligible"] == pytest.approx(sets.sum() / N)
    shown = np.bincount(log.column("action"), minlength=n_actions)
    assert numbers["never_shown"] == ((sets.sum(axis=0) > 0) & (shown == 0)).sum() >= 2
    assert numbers["hardly_eligible"] == ((sets.sum(axis=0) > 0) & (sets.sum(axis=0) < N / 1_000)).sum()
    p = log.column("propensity")
    binds = [i for i in range(N) if p[i] <= 1.01 * p.min()]
    assert numbers["binding_displays"] == len(binds)
    assert numbers["largest_binding_set"] == max(sets[i].sum() for i in binds)
    action = log.column("action")
    known = np.bincount(action, minlength=n_actions) > 0
    off = [(1.0 / p[action == k]).sum() / sets[:, k].sum() - 1.0 for k in np.flatnonzero(known)]
    assert np.abs(np.array(off) - found.statistic).min() < 1e-9


@pytest.mark.parametrize("n_actions", WIDTHS)
def test_propensities_off_by_the_size_of_the_set_are_found_whatever_its_width(n_actions: int) -> None:
    log, sets = logged(n_actions)
    size = np.delete(sets, [0, n_actions - 1], axis=1).sum(axis=1)
    said = np.where(size >= 3, 1.3, 0.7) / size
    at = log.displays.schema.get_field_index("propensity")
    wrong = replace(log, displays=log.displays.set_column(at, "propensity", pa.array(np.minimum(said, 1.0))))
    assert evaluator.check(wrong)["eligible actions"].verdict == "fail"


@pytest.mark.parametrize("n_actions", WIDTHS)
@pytest.mark.parametrize("policy", ["ucb1:ties=lowest", "linucb:ties=lowest", "random"])
def test_a_replay_accepts_what_its_definition_does(policy: str, n_actions: int) -> None:
    log, sets = logged(n_actions)
    planned = plan(log, policy, window=60)
    lived = []
    for recorded in (False, True):
        replay = engine.begin(planned.policy, planned.setting, sampler="rejection", recorded=recorded)
        for first, batch in planned.rounds.batches(N):
            replay.read(first, batch)
        lived.append(replay.result())
    lazy, whole = lived
    np.testing.assert_array_equal(lazy.displays, whole.displays)
    assert whole.choices is not None
    # Rounds of what was thinned are none; a choice is among what is eligible, and shown where it was logged.
    at = lazy.displays
    assert sets[np.arange(len(whole.choices)), whole.choices].all()
    assert (whole.choices[at] == log.column("action")[at]).all()
    assert len(at) > N / 50


@pytest.mark.parametrize("n_actions", WIDTHS)
def test_a_comparison_that_ships_checks_logs_of_any_width(n_actions: int) -> None:
    log, _ = logged(n_actions)
    found = evaluator.compare(log, ["random", "ucb1"], ship_if="uplift > 0", bootstrap=0)
    assert found.check is not None
    assert found.check["eligible actions"].verdict == "warn"
    assert found.results[0].rounds > N / 50
    assert not any("1/propensity" in said for said in found.results[0].warnings)


@pytest.mark.parametrize("n_actions", [9, 65])
def test_an_audit_draws_twins_of_any_width(n_actions: int) -> None:
    log, _ = logged(n_actions)
    found = evaluator.audit(log, ["random"], twins=10)
    assert found.policies[0].policy == "random"
