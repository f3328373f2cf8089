"""Policies played where eligible actions vary, in plain NumPy: what a replay with sets must agree with.

Nothing of the evaluator is used, neither its loops nor its policies: each learner is written from its paper's formula,
and chooses among the eligible actions. An action that was never played has an infinite index, equals have the same
chance, and rounds are counted whatever was eligible in them. A conversion of round s with delay d is told at the end of
round s + d, if d is within the window. Many runs are played side by side, a row each, so that thousands are cheap.

On a *thinned* calendar the policy serves each display of a campaign with a probability, and its rounds are those. That
is what a replay lives which accepts as many; its delays stay those of the whole traffic, counted in its own rounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from tests.worlds_with_sets import DIMENSION, Displays, Floats, Ints, Truths, World, offers, shown_with

Way = Literal["rejection", "1/K", "a c per set", "keep", "queue", "discarded", "replaced", "shuffled"]


class Learner:
    """A policy by its formula, in R runs side by side; this one chooses at random.

    `runs` are the numbers of the runs that a call is about, m different ones, and `x` their contexts, shape (m, 5).
    """

    def __init__(self, world: World, runs: int, rounds: int) -> None:
        self.k = world.k
        self.t = np.zeros(runs, np.int64)  # rounds lived
        self.actions = np.zeros((runs, rounds), np.int64)
        self.pulls = np.zeros((runs, world.k))
        self.successes = np.zeros((runs, world.k))
        # Of the conversions that the world's log sees, the share with a delay of at most 0, 1, ... rounds.
        cdf = 1.0 - (1.0 - 1.0 / (1.0 + world.mean_delay)) ** np.arange(1.0, world.window + 2)
        self.tau = cdf / cdf[-1]

    def scores(self, runs: Ints, x: Floats, rng: np.random.Generator) -> Floats:
        """Return each action's score, shape (m, K)."""
        return np.zeros((len(runs), self.k))

    def choose(self, runs: Ints, x: Floats, eligible: Truths, rng: np.random.Generator) -> Ints:
        """Return the best of the eligible actions, shape (m,); equals have the same chance."""
        scores = np.where(eligible, self.scores(runs, x, rng), -np.inf)
        best = eligible & (scores == scores.max(axis=1, keepdims=True))
        return np.where(best, rng.random(best.shape), -1.0).argmax(axis=1)

    def shown(self, runs: Ints, x: Floats, action: Ints) -> None:
        """Note the displays of a round."""
        self.actions[runs, self.t[runs]] = action
        self.t[runs] += 1
        self.pulls[runs, action] += 1

    def told(self, runs: Ints, x: Floats, action: Ints) -> None:
        """Note conversions of displays with these contexts and actions, of a run perhaps several."""
        np.add.at(self.successes, (runs, action), 1.0)


class UCB1(Learner):
    """mean + sqrt(2 log t / N): Auer et al. 2002."""

    def scores(self, runs: Ints, x: Floats, rng: np.random.Generator) -> Floats:
        pulls, n = self.pulls[runs], np.maximum(self.pulls[runs], 1)
        width = np.sqrt(2 * np.log(self.t[runs] + 1)[:, None] / n)
        return np.where(pulls > 0, self.successes[runs] / n + width, np.inf)


class DelayedUCB(Learner):
    """S / N~ + sqrt(N / N~) sqrt(log t / (2 N~)), N~ the pulls weighed by the chance that one has been seen to convert.

    Vernade et al. 2017, the censored model with a known CDF.
    """

    def scores(self, runs: Ints, x: Floats, rng: np.random.Generator) -> Floats:
        t, pulls = self.t[runs, None], self.pulls[runs]
        longest = int(t.max())
        age = t - 1 - np.arange(longest)
        weight = np.where(age < 0, 0.0, self.tau[np.clip(age, 0, len(self.tau) - 1)])
        cell = np.arange(len(runs))[:, None] * self.k + self.actions[runs, :longest]
        seen = np.bincount(cell.ravel(), weight.ravel(), len(runs) * self.k).reshape(-1, self.k)
        seen = np.where(pulls > 0, seen, 1.0)
        width = np.sqrt(pulls / seen) * np.sqrt(np.log(t + 1) / (2 * seen))
        return np.where(pulls > 0, self.successes[runs] / seen + width, np.inf)


class Thompson(Learner):
    """A draw from each action's Beta(1 + S, 1 + N - S): Agrawal, Goyal 2012."""

    def scores(self, runs: Ints, x: Floats, rng: np.random.Generator) -> Floats:
        return rng.beta(1 + self.successes[runs], 1 + self.pulls[runs] - self.successes[runs])


class Linear(Learner):
    """Disjoint regressions on the context: V_k = I + sum x x', theta_k = V_k^-1 (sum of the x that converted)."""

    def __init__(self, world: World, runs: int, rounds: int) -> None:
        super().__init__(world, runs, rounds)
        self.v = np.tile(np.eye(DIMENSION), (runs, world.k, 1, 1))
        self.inverse = self.v.copy()
        self.moment = np.zeros((runs, world.k, DIMENSION))

    def shown(self, runs: Ints, x: Floats, action: Ints) -> None:
        """Note the displays of a round."""
        super().shown(runs, x, action)
        self.v[runs, action] += x[:, :, None] * x[:, None, :]
        self.inverse[runs, action] = np.linalg.inv(self.v[runs, action])

    def told(self, runs: Ints, x: Floats, action: Ints) -> None:
        """Note conversions."""
        np.add.at(self.moment, (runs, action), x)

    def estimates(self, runs: Ints, x: Floats) -> tuple[Floats, Floats]:
        """Return <x, theta_k> and ||x|| in V_k^-1, shape (m, K) each."""
        turned = np.einsum("mkij,mj->mki", self.inverse[runs], x)
        return (turned * self.moment[runs]).sum(axis=2), np.sqrt(np.einsum("mki,mi->mk", turned, x))


class LinUCB(Linear):
    """<x, theta_k> + ||x|| in V_k^-1: Li et al. 2010."""

    def scores(self, runs: Ints, x: Floats, rng: np.random.Generator) -> Floats:
        mean, norm = self.estimates(runs, x)
        return mean + norm


class LinTS(Linear):
    """<x, theta~_k>, theta~_k a draw from N(theta_k, V_k^-1 / 4): Agrawal, Goyal 2013."""

    def scores(self, runs: Ints, x: Floats, rng: np.random.Generator) -> Floats:
        mean, norm = self.estimates(runs, x)
        return mean + 0.5 * norm * rng.standard_normal(mean.shape)


LEARNERS: dict[str, type[Learner]] = {
    "random": Learner,
    "ucb1": UCB1,
    "delayed-ucb": DelayedUCB,
    "thompson": Thompson,
    "linucb": LinUCB,
    "lints": LinTS,
}


class Lived(NamedTuple):
    """What a policy lived, a number a run: of its rounds the mean expected and seen reward, the mean |E|, their number.

    An expected reward counts conversions however late, a seen one those within the world's window.
    """

    value: Floats
    reward: Floats
    size: Floats
    rounds: Floats


class Rows(NamedTuple):
    """Displays of R runs, one run after the other: run r has rows begin[r] to begin[r + 1], excluded.

    `luck` decides of an action whether it converts: where it is below its expected reward.
    """

    begin: Ints
    context: Floats
    eligible: Truths
    expected: Floats
    luck: Floats
    delay: Ints


class Play:
    """A learner in runs side by side, the conversions that it waits for, and what it lived."""

    def __init__(self, world: World, policy: str, rows: Rows) -> None:
        runs, rounds = len(rows.begin) - 1, int(np.diff(rows.begin).max())
        self.learner = LEARNERS[policy](world, runs, rounds)
        self.rows, self.longest = rows, world.window
        # Of the rounds of the last window, their row, action, and the round at whose end their conversion is told.
        self.row, self.action, self.told_at = np.zeros((3, runs, world.window + 1), np.int64)
        self.sums = np.zeros((3, runs))

    def choose(self, runs: Ints, row: Ints, eligible: Truths, rng: np.random.Generator) -> Ints:
        """Return the learner's choices at these rows."""
        return self.learner.choose(runs, self.rows.context[row], eligible, rng)

    def round(self, runs: Ints, row: Ints, action: Ints) -> None:
        """Live a round in each of these runs, with these rows."""
        rows, t = self.rows, self.learner.t[runs]
        self.learner.shown(runs, rows.context[row], action)
        seen = (rows.luck[row] < rows.expected[row, action]) & (rows.delay[row] <= self.longest)
        slot = t % (self.longest + 1)
        self.row[runs, slot], self.action[runs, slot] = row, action
        self.told_at[runs, slot] = np.where(seen, t + 1 + rows.delay[row], 0)
        now, then = np.nonzero(self.told_at[runs] == t[:, None] + 1)
        told = runs[now]
        self.learner.told(told, rows.context[self.row[told, then]], self.action[told, then])
        self.sums[:, runs] += rows.expected[row, action], seen, rows.eligible[row].sum(axis=1)

    def lived(self) -> Lived:
        """Return the means over the rounds so far."""
        return Lived(*self.sums / self.learner.t, self.learner.t.astype(float))

    def in_order(self) -> Iterable[tuple[Ints, Ints]]:
        """Yield the runs that have an i-th row, and these rows, for i = 0, 1, ..."""
        length = np.diff(self.rows.begin)
        for i in range(length.max()):
            runs = np.flatnonzero(i < length)
            yield runs, self.rows.begin[runs] + i


def live(world: World, policy: str, displays: int, served: Floats, seed: int, *, as_logger: int = 0) -> Lived:
    """Play a policy on campaigns of so many displays, over which the calendar runs.

    Parameters
    ----------
    served
        Probability with which each run serves a display, shape (R,): 1 for the whole calendar.
    as_logger
        First rounds of a run, in which the world's logger chooses and the policy only learns.
    """
    rng = np.random.default_rng([seed, world.seed, 1])
    run, at = np.nonzero(rng.random((len(served), displays)) < served[:, None])
    begin = np.searchsorted(run, np.arange(len(served) + 1))
    delay = rng.geometric(1.0 / (1.0 + world.mean_delay), len(at)) - 1
    play = Play(world, policy, Rows(begin, *offers(world, at / displays, rng), rng.random(len(at)), delay))
    for runs, row in play.in_order():
        action = play.choose(runs, row, play.rows.eligible[row], rng)
        first = np.flatnonzero(play.learner.t[runs] < as_logger)
        if len(first):
            p = np.cumsum(shown_with(world, play.rows.context[row[first]], play.rows.eligible[row[first]]), axis=1)
            action[first] = (rng.random((len(first), 1)) * p[:, -1:] >= p).sum(axis=1)
        play.round(runs, row, action)
    return play.lived()


def replayed(world: World, policy: str, logs: list[Displays], way: Way, seed: int) -> Lived:
    """Replay a policy on logged displays: by rejection on the traffic clock, or by a tempting wrong way.

    A display whose action is the policy's choice is accepted with probability c / p. The wrong ways:

    - ``1/K``: p is taken for 1/K where actions were chosen among the eligible ones.
    - ``a c per set``: c is the smallest propensity of the display's own set.
    - ``keep``: a choice waits until a display shows it, which is accepted.
    - ``queue``: a round chooses in the set of the next display, and gets the next one that shows its choice, however
      late; a run ends when there is none.
    - ``discarded``: the policy chooses among all K, and a display is passed over where its choice is not eligible.
    - ``replaced``: the policy chooses among all K, and a random eligible action stands for one that is not eligible.
    - ``shuffled``: displays have each other's sets.
    """
    rng = np.random.default_rng([seed, world.seed, 2])
    kept = [np.flatnonzero(_lottery(drawn, way, rng)) for drawn in logs]
    begin = np.cumsum([0, *(len(at) for at in kept)])
    parts = zip(*((d.context[a], d.eligible[a], d.expected[a], d.rewarded[a], d.delay[a], d.action[a])
                  for d, a in zip(logs, kept, strict=True)), strict=True)  # fmt: skip
    context, eligible, expected, rewarded, delay, logged = (np.concatenate(part) for part in parts)
    if way == "shuffled":
        for a, b in pairwise(begin):
            eligible[a:b] = rng.permutation(eligible[a:b])
    # The logged action's reward has been drawn: it converts for sure, or never.
    play = Play(world, policy, Rows(begin, context, eligible, expected, np.where(rewarded, -1.0, 2.0), delay))
    if way == "queue":
        return _queued(play, logged, rng)
    waiting = np.full(len(logs), -1)
    for runs, row in play.in_order():
        among = eligible[row] if way not in ("discarded", "replaced") else np.ones((len(row), world.k), np.bool_)
        choice = play.choose(runs, row, among, rng)
        if way == "keep":
            choice = np.where(waiting[runs] >= 0, waiting[runs], choice)
        elif way == "replaced":
            other = np.where(eligible[row], rng.random(among.shape), -1.0).argmax(axis=1)
            choice = np.where(eligible[row, choice], choice, other)
        match = choice == logged[row]
        waiting[runs] = np.where(match, -1, choice)
        if match.any():
            play.round(runs[match], row[match], choice[match])
    return play.lived()


def _lottery(drawn: Displays, way: Way, rng: np.random.Generator) -> Truths:
    """Return which displays are accepted if they show the policy's choice, shape (n,)."""
    if way in ("1/K", "keep", "queue"):
        return np.ones(len(drawn.action), np.bool_)
    smallest = np.where(drawn.eligible, drawn.probability, np.inf).min(axis=1)
    c = smallest if way == "a c per set" else drawn.propensity.min()
    return rng.random(len(drawn.action)) < c / drawn.propensity


def _queued(play: Play, logged: Ints, rng: np.random.Generator) -> Lived:
    begin, k = play.rows.begin, play.rows.eligible.shape[1]
    queues = [
        [list(a + np.flatnonzero(logged[a:b] == action)[::-1]) for action in range(k)] for a, b in pairwise(begin)
    ]
    left = np.ones(len(queues), np.bool_)
    for runs, row in play.in_order():
        runs, row = runs[left[runs]], row[left[runs]]
        choice = play.choose(runs, row, play.rows.eligible[row], rng)
        left[runs] = [bool(queues[r][a]) for r, a in zip(runs, choice, strict=True)]
        runs, choice = runs[left[runs]], choice[left[runs]]
        if not len(runs):
            break
        play.round(runs, np.array([queues[r][a].pop() for r, a in zip(runs, choice, strict=True)]), choice)
    return play.lived()
