"""Twins have the eligible actions of their log, and propensities over these; live runs are of the same displays."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pytest

import evaluator
from evaluator.errors import EvaluatorError
from evaluator.log import Log
from evaluator.log.eligible import pack, unpack
from evaluator.log.schema import uneven_lists
from evaluator.worlds.live_parts import LiveWorld
from evaluator.worlds.live_policy import LiveSpan, draw_rounds
from evaluator.worlds.logger import TwinSets, best_order_value
from evaluator.worlds.twin_log import draw_twin
from tests.audits.test_truth import truth_of
from tests.audits.test_twins import entries_of
from tests.logs_with_sets import K, Logger, SetKind, make_log

N = 4_000


def sets_of(log: Log) -> npt.NDArray[np.bool_]:
    return unpack(log.displays["eligible"], K)


@pytest.mark.parametrize("logger", ["uniform", "popularity", "softmax"])
@pytest.mark.parametrize("kind", ["constant", "calendar", "context", "random"])
def test_twins_keep_the_contract_and_choose_among_the_eligible(kind: SetKind, logger: Logger) -> None:
    log = make_log(N, kind, logger, 1)
    truth = truth_of(log)
    twin = draw_twin(truth, seed=1, twin=0)
    sets = sets_of(twin.validated())
    p = truth.logger[entries_of(twin)]
    assert not (p * ~sets).any()
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert (p[sets] > 0).all()
    at = np.arange(N), twin.column("action")
    assert (twin.column("propensity") == p[at]).all()
    # A mean of N sets, and that of the log's N, of which the twin's were drawn.
    assert abs(sets.sum(axis=1).mean() - sets_of(log).sum(axis=1).mean()) <= 4 * sets.sum(axis=1).std() * (2 / N) ** 0.5
    if logger == "uniform":
        assert 1.0 / p[at] == pytest.approx(sets.sum(axis=1))


def test_a_calendar_is_kept_and_random_sets_are_not() -> None:
    log = make_log(N, "calendar", "uniform", 1)
    twin = draw_twin(truth_of(log), seed=1, twin=0)
    off = np.flatnonzero((sets_of(twin) != sets_of(log)).any(axis=1))
    assert 0 < len(off) < 0.05 * N  # on the day of a change alone
    fixed = draw_twin(truth_of(make_log(N, "random", "uniform", 1)), seed=1, twin=0)
    assert abs(np.corrcoef(entries_of(fixed), np.arange(N))[0, 1]) < 4 / N**0.5


def test_live_runs_on_a_calendar_are_a_share_of_it() -> None:
    truth = truth_of(make_log(N, "calendar", "uniform", 1))
    assert truth.sets is not None
    world = LiveWorld(np.zeros((1, 1, 0)), truth.rates, truth.values, np.zeros((1, 1)), 0)
    lived = draw_rounds(np.random.default_rng(1), 300, truth.sets, world, displays=N, span=LiveSpan(400, 1_000, N - 1))
    assert (np.diff(lived.share) > 0).all()
    assert lived.share[0] >= 0.25
    # The 300th of 400 displays that are drawn from 3,000: three quarters of the way.
    assert abs(lived.share[-1] - (0.25 + 0.75 * 0.75)) < 4 * 0.75 * (0.75 * 0.25 / 400) ** 0.5
    assert (abs(lived.entry / N - lived.share) <= 1 / truth.sets.blocks).all()


def test_vectors_of_the_eligible_actions_alone_are_theirs_in_twins() -> None:
    log = make_log(N, "random", "uniform", 1)
    sets = sets_of(log)
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(N, K, 5))
    vectors[:, :, 0] = np.arange(K)
    lists = uneven_lists(vectors[sets], sets.sum(axis=1))
    displays = log.displays.drop_columns("context").append_column("action_set", lists)
    log = dataclasses.replace(log, displays=displays).validated()
    twin = draw_twin(truth_of(log), seed=1, twin=0)
    flat = twin.column("action_set")
    assert flat[:, 0].astype(int).tolist() == np.nonzero(sets_of(twin))[1].tolist()
    assert flat == pytest.approx(vectors[entries_of(twin)][sets_of(twin)])
    (found,) = evaluator.audit(log, "linucb", twins=10, seed=1).policies
    assert not found.biased


def test_the_best_order_falls_back_on_the_next_eligible_action() -> None:
    truths = np.array([[True, True], [False, True]])
    rates = np.array([[0.5, 0.2], [0.5, 0.4]])
    # Action 0 (mean .5 where it is eligible) before action 1 (mean .3).
    assert best_order_value(rates, truths, np.ones(2), np.zeros(2), np.ones(2)) == pytest.approx((0.5 + 0.4) / 2)
    # A cost of .25 puts it behind action 1.
    cost, free = np.array([0.25, 0.0]), np.zeros(2)
    assert best_order_value(rates, truths, np.ones(2), cost, np.ones(2)) == pytest.approx((0.2 + 0.4) / 2)
    assert best_order_value(rates, truths, np.array([0.1, 1.0]), free, np.ones(2)) == pytest.approx((0.2 + 0.4) / 2)
    assert best_order_value(rates, truths, np.ones(2), free, np.array([1.0, 0.5])) == pytest.approx((0.5 + 0.2) / 2)


def test_blocks_hold_all_entries_once() -> None:
    sets = TwinSets(pack(np.ones((103, 2), np.bool_)), np.ones((103, 2), np.bool_), 5)
    share = (np.arange(1_000) + 0.5) / 1_000
    low, high = sets.entries(share, np.zeros(1_000)), sets.entries(share, np.full(1_000, 1 - 1e-9))
    assert sorted({*low.tolist()}) == [0, 20, 41, 61, 82]
    assert sorted({*high.tolist()}) == [19, 40, 60, 81, 102]
    assert sets.by_block(np.arange(103.0)[:, None])[:, 0].tolist() == [9.5, 30.0, 50.5, 71.0, 92.0]


def test_policies_that_refuse_sets_are_refused_as_in_a_replay() -> None:
    log = make_log(N, "random", "uniform", 1)
    said = []
    for ask in (evaluator.audit, evaluator.replay):
        with pytest.raises(EvaluatorError) as caught:
            ask(log, "qpm-d")
        said.append(str(caught.value))
    assert said[0] == said[1]
