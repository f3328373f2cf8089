"""QPM-D: a bandit that knows no delays, fed from queues (Joulani, György, Szepesvári 2013, Algorithm 1).

The base policy asks for an arm. While that arm's queue holds an observation, the oldest is fed to the base, which asks
anew; when the queue is empty the arm is shown. Base indices use the base's own counts: n_k observations fed, n of all
arms. UCB1: mean + sqrt(2 log(n + 1) / n_k), KL-UCB: max{q: n_k d(mean, q) <= log(n + 1)}; n + 1 is the base's round, so
that without delays it plays as `ucb1` or `klucb`.

The algorithm needs every reward, zeros too, and the log tells conversions only. A conversion is observed when it comes,
with its value; a display without one is observed to be a zero when its window closes, at age m, after the conversions
of that round. Later conversions of a display already observed are added to its observation, fed or not. Without a
window no zero is ever observed: then every arm's mean is that of its conversions (Vernade et al. 2017, Section 3).

The papers' QPM-D is told of a zero after a delay of its own. Scenarios with ``zeros = "told"`` do so, as a conversion
of value 0; no window is needed then, and a zero later than the window is still taken when that closes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import argmax
from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.indices import bernoulli_index, estimate_rates

_NONE = -1


class QPMDState(NamedTuple):
    """Base, queues, and the ring of open displays.

    Of each arm, shape (K,): observations fed to the base (`pulls`), their sum (`rewards`), the base's index when it
    last asked, and the first and the last observation in its queue (`heads`, `tails`), -1 when empty. Of each place of
    an observation, shape (places,): its `value`, the round of its display (`owner`), and the next one in the queue, or
    in the list of free places (`following`), of which `free` is the first, shape (1,).

    Rings of the last m + 1 displays, shape (m + 1,), hold their arms (`actions`) and their observations (`places`), -1
    while unobserved. Of shape (1,): the arm that the base asks for (`choice`), 1 once it has asked (`asked`), and
    displays so far (`rounds`). The base is KL-UCB with `kl`, else UCB1.
    """

    pulls: npt.NDArray[np.float64]
    rewards: npt.NDArray[np.float64]
    indices: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    asked: npt.NDArray[np.int64]
    heads: npt.NDArray[np.int64]
    tails: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    owner: npt.NDArray[np.int64]
    following: npt.NDArray[np.int64]
    free: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    kl: bool
    random_ties: bool


@dataclass(frozen=True, kw_only=True)
class QPMD(Policy):
    """A delay-free base policy fed from one queue of observations an arm."""

    name = "qpm-d"
    delays = (
        "feeds `ucb1` or `klucb` from a queue of observations an arm; a zero is known when its window closes (in "
        'scenarios with `zeros = "told"`, when it comes)'
    )
    unit_rewards = True
    takes_costs = False
    why_not_negative = "a display's first event is its one observation, and the sale would come after it"
    paper = "Joulani, György, Szepesvári 2013, Algorithm 1"
    needs = (Need.WINDOW,)
    takes_zeros = True
    note = (
        "A display without a conversion is a zero once its window has closed; without a window no zero is ever "
        'observed, and every arm\'s mean is that of its conversions alone. In scenarios with zeros = "told" it is told '
        "of each zero after a delay of its own, as in the papers."
    )
    base: Literal["ucb1", "klucb"] = parameter("ucb1", "the policy that is fed, with its defaults")
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal indices of the base")

    def start(self, setting: Setting) -> QPMDState:
        """Return the state before the first round."""
        n_actions = setting.n_actions
        open_displays = min(setting.window, setting.horizon) + 1
        # An arm is not chosen while its queue holds something, so a queue never holds more than the displays that were
        # open when it filled, and those that were shown before the policy could choose anew.
        observations = min(n_actions * (open_displays + min(setting.waits, setting.horizon)), setting.horizon)
        following = np.arange(1, observations + 1)
        following[-1:] = _NONE
        pulls, rewards, indices = np.zeros((3, n_actions))
        choice, asked, free, rounds = np.zeros((4, 1), np.int64)
        heads, tails = np.full((2, n_actions), _NONE)
        return QPMDState(
            pulls, rewards, indices, choice, asked, heads, tails, np.zeros(observations),
            np.full(observations, _NONE), following, free, np.zeros(open_displays, np.int64),
            np.full(open_displays, _NONE), rounds, self.base == "klucb", self.ties == "random",
        )  # fmt: skip


@inlinable
def _observe(state: QPMDState, shown: int, value: float) -> None:
    """Put the observation of the display of round `shown` at the end of its arm's queue."""
    slot = shown % state.actions.shape[0]
    arm, place = state.actions[slot], state.free[0]
    if place < 0:
        raise ValueError("an arm was shown that the policy did not choose")
    state.free[0] = state.following[place]
    state.value[place] = value
    state.owner[place] = shown
    state.following[place] = _NONE
    if state.tails[arm] < 0:
        state.heads[arm] = place
    else:
        state.following[state.tails[arm]] = place
    state.tails[arm] = place
    state.places[slot] = place


@inlinable
def _feed(state: QPMDState, arm: int) -> None:
    """Give the oldest observation in the arm's queue to the base."""
    place = state.heads[arm]
    state.heads[arm] = state.following[place]
    if state.heads[arm] < 0:
        state.tails[arm] = _NONE
    state.pulls[arm] += 1.0
    state.rewards[arm] += state.value[place]
    state.owner[place] = _NONE
    state.following[place] = state.free[0]
    state.free[0] = place


@inlinable
def _ask(state: QPMDState, rng: np.random.Generator) -> None:
    total = 0.0
    for k in range(state.pulls.shape[0]):
        total += state.pulls[k]
    log_n = math.log(total + 1.0)
    for k in range(state.pulls.shape[0]):
        n = state.pulls[k]
        if n == 0.0:
            state.indices[k] = np.inf
            continue
        mean = min(state.rewards[k] / n, 1.0)
        state.indices[k] = bernoulli_index(mean, log_n / n) if state.kl else mean + math.sqrt(2.0 * log_n / n)
    state.choice[0] = argmax(state.indices, state.random_ties, rng)


def _begin(state: QPMDState, rng: np.random.Generator) -> None:
    closing = state.rounds[0] - state.places.shape[0]
    if closing >= 0 and state.places[closing % state.places.shape[0]] < 0:
        _observe(state, closing, 0.0)
    if state.asked[0] == 0:
        state.asked[0] = 1
        _ask(state, rng)
    while state.heads[state.choice[0]] >= 0:
        _feed(state, state.choice[0])
        _ask(state, rng)


def _shown(state: QPMDState, vectors: npt.NDArray[np.float64], action: int) -> None:
    slot = state.rounds[0] % state.actions.shape[0]
    state.actions[slot] = action
    state.places[slot] = _NONE
    state.rounds[0] += 1


def _told(state: QPMDState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    shown = state.rounds[0] - 1 - delay
    place = state.places[shown % state.actions.shape[0]]
    if place < 0:
        _observe(state, shown, value)
    elif state.owner[place] == shown:
        state.value[place] += value
    else:
        state.rewards[action] += value


def _estimate(state: QPMDState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write the mean of the observations fed to the base."""
    estimate_rates(state.rewards, state.pulls, values)


implement(QPMDState, begin=_begin, shown=_shown, told=_told, estimate=_estimate, ages=True)
