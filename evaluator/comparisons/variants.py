"""The variants of a study: every policy with every window and schedule, and the rounds at which they are compared.

The number of rounds is the same for all, and no outcome moves it. Each variant has a curve up to there, whose bands of
value and regret hold at all rounds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.log_replay import sure_rounds
from evaluator.estimates.confidence import interval_ends, sums_until
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.options.deployment import EVENT, OBJECTIVE
from evaluator.policies.base import Need
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay, read_basis
from evaluator.replays.result import ReplayResult
from evaluator.replays.support import least_acceptance
from evaluator.replays.values.rewards import RewardBounds, observed_rewards, reward_bounds
from evaluator.replays.warm_start import learned_among, numbered_as_learned
from evaluator.results.json_documents import Count, Positive, array_of, omitted

Window = str | int | None
P = TypeVar("P")
Floats = npt.NDArray[np.float64]
# Probability that any of the replays ends before the horizon: three standard deviations for a single one.
_MISSED = 0.00135
_CHECKPOINTS = 200
_Listed = Annotated[Floats, *array_of(float, most=_CHECKPOINTS)]


class Case(NamedTuple):
    """How the policy of a variant is deployed: the cut-off of the system, when it learns, and from what."""

    window: Window
    learn_every: str | int | None = None
    learn_from: str | None = None

    @property
    def learning(self) -> tuple[str | int | None, str | None]:
        """What makes no difference to a policy that does not learn."""
        return self.learn_every, self.learn_from


def cases_of(
    windows: Sequence[Window], schedules: Sequence[str | int | None] | None, options: ReplayOptions
) -> tuple[Case, ...]:
    """Return every window with every schedule, that of the options where none is named, and every teacher.

    What teaches is named by the options, several by commas.
    """
    every = (options.learn_every,) if schedules is None else schedules
    teachers = teachers_of(options.learn_from)
    return tuple(Case(*of) for of in product(windows, every, teachers))


def pairs_of(
    policies: Sequence[P], cases: Sequence[Case], description: Callable[[P], Any] = lambda policy: policy
) -> list[tuple[P, Case]]:
    """Return the policy and the case of each variant, which differs from the others.

    The logging policy waits for nothing, and has the first case only; what does not learn has no schedule of its own.
    Policies may come with whatever belongs to them: `description` returns the description of one.
    """
    found: list[tuple[P, Case]] = []
    for policy in policies:
        of = description(policy)
        own = [case for case in cases if _learns(of) or case.learning == cases[0].learning]
        found += [(policy, case) for case in (own[:1] if _is_logging(of) else own)]
    return found


def teachers_of(learn_from: str | None) -> list[str | None]:
    """Return what is to teach the policies of a comparison, which commas separate; None for what the log says.

    >>> teachers_of("sales, click@1d")
    ['sales', 'click@1d']
    """
    return [None] if learn_from is None else [teacher.strip() for teacher in learn_from.split(",")]


def _learns(policy: Any) -> bool:
    return bool(getattr(policy, "policy", policy).learns)  # of one that has learned, what it is a policy of


def _is_logging(policy: Any) -> bool:
    return isinstance(policy, LoggingPolicy)


class Variants:
    """Policies with their cases on one log, numbered from 0 in the order of `pairs_of`; the options have none."""

    def __init__(self, log: Log, policies: Sequence[Any], cases: Sequence[Case], options: ReplayOptions) -> None:
        own = learned_among(policies, options)
        pairs = pairs_of(own, cases, lambda of: of[0])
        # The logging policy's value is the log's mean: no number of rounds of the others cuts it short.
        self._asked = [
            (policy, replace(asked, **case._asdict(), horizon=None if _is_logging(policy) else asked.horizon))
            for (policy, asked), case in pairs
        ]
        self._basis = read_basis(numbered_as_learned(log, [policy for policy, _ in own]), options)

    def __len__(self) -> int:
        return len(self._asked)

    def plan(self, number: int) -> ReplayPlan:
        """Plan a variant."""
        return plan_replay(self._basis, *self._asked[number])


@dataclass(frozen=True)
class VariantInputs:
    """What a variant's policy was told.

    Parameters
    ----------
    needs
        Facts that the policy asks to be told.
    delay_cdf
        Sentence that says where its delay CDF comes from; None where it needs none, or there is none.
    horizon
        The largest number of rounds, which it was told if it needs the horizon; None where not.
    """

    needs: tuple[Need, ...]
    delay_cdf: str | None
    horizon: int | None

    @property
    def needs_cdf(self) -> bool:
        """Whether the policy asks for a delay CDF."""
        return Need.DELAY_CDF in self.needs


def assumed_by(plan: ReplayPlan) -> VariantInputs:
    """Return what the policy of a variant was told."""
    cdf = plan.setting.delay_cdf
    return VariantInputs(
        needs=tuple(plan.policy.needs),
        delay_cdf=cdf.source if cdf is not None and Need.DELAY_CDF in plan.policy.needs else None,
        horizon=plan.setting.horizon if Need.HORIZON in plan.policy.needs else None,
    )


@dataclass(frozen=True)
class Line:
    """A variant as reports name it.

    Parameters
    ----------
    variant
        Number of the variant, from 0; people count from 1.
    policy, window
        Policy and window, as they were asked for.
    title
        Policy as sentences write it, with the label of a fixed action; empty where that is `policy`.
    learns
        Schedule by which the policy learns, as it was asked for; empty where it never does.
    learn_from
        Kind of events, or revenue, that the policy learns from; empty where that is the objective, or nothing.
    """

    variant: Count
    policy: str
    window: str
    title: Annotated[str, *omitted] = ""
    learns: str = ""
    learn_from: Annotated[str, *omitted] = ""

    def named_among(self, lines: Iterable[Line], *, short: bool = False) -> str:
        """Return the name that tells it from others: its policy, with window, schedule and teacher where these differ.

        The logging policy is one line, whatever the windows: no window is its own. A short name has no words on what
        these are.

        >>> nightly, event = (Line(0, "ucb1", "7d", learns=learns) for learns in ("1d@03:00", "event"))
        >>> event.named_among([nightly]), event.named_among([nightly], short=True)
        ('ucb1, at each event', 'ucb1, event')
        """
        title = self.title or self.policy
        if self.policy == "logging":
            return title
        among = [self, *lines]
        window = f", window {self.window}" if len({line.window for line in among}) > 1 else ""
        differ = self.learns and len({line.learns for line in among if line.learns}) > 1
        told = any(
            line.learn_from != self.learn_from and (line.learn_from or line.policy == self.policy) for line in among
        )
        taught = f", told {self.learn_from}" if self.learn_from and told else ""
        if short:
            cut = "no window" if self.window == "none" else self.window
            given = (cut, window), (self.learns, differ), (self.learn_from, taught)
            return ", ".join([title, *(text for text, differs in given if differs)])
        return title + window + (learns_words(self.learns) if differ else "") + taught


def learns_words(learns: str) -> str:
    """Return a clause that says when a policy learns."""
    return ", at each event" if learns == EVENT else f", every {learns}"


def names_of(results: Sequence[ReplayResult]) -> list[str]:
    """Return the names of all variants of a comparison."""
    lines = [line_of(i, result) for i, result in enumerate(results)]
    return [line.named_among(lines) for line in lines]


def line_of(variant: int, result: ReplayResult) -> Line:
    """Return a variant as reports name it."""
    plan = result.plan
    return Line(variant, plan["policy"], window_text(result), result.title, learns_text(result), taught_by(plan))


def taught_by(plan: Mapping[str, Any]) -> str:
    """Return what the policy of a variant learns from, by the plan of its result; empty for the objective."""
    teacher = str(plan["options"]["learn_from"])
    return "" if teacher == OBJECTIVE else teacher


def learns_text(result: ReplayResult) -> str:
    """Return when the policy of a variant learns, as reports name it; empty where it never does."""
    return learned_at(result.plan, None if result.schedule is None else result.schedule.learn_every)


def learned_at(plan: Mapping[str, Any], every: str | None) -> str:
    """Return when a policy of such a plan learns, given the schedule of its replay; empty where it never does."""
    return (every or EVENT) if plan["learns"] else ""


def window_text(result: ReplayResult) -> str:
    """Return the window of a variant as reports name it."""
    window, ticks = result.plan["window_rounds"], result.plan["window_ticks"]
    if window is None:
        return "none"
    return f"{window:,}" if ticks is None else str(result.plan["options"]["window"])


@dataclass(frozen=True)
class CommonHorizon:
    """Rounds at which replays are compared.

    Parameters
    ----------
    rounds
        Number of rounds T of each replay that are compared.
    fixed
        Whether T was fixed before any outcome was seen, as the intervals assume.
    why
        Clause for reports that says why it is this number.
    """

    rounds: Count
    fixed: bool
    why: str


@dataclass(frozen=True, eq=False)
class FirstRounds:
    """What a replay showed in its first T rounds, and earned: one array a repeat, shape (T,) each."""

    displays: tuple[npt.NDArray[np.int64], ...]
    rewards: tuple[npt.NDArray[np.float64], ...]


def common_horizon(plans: Sequence[ReplayPlan], results: Sequence[ReplayResult]) -> CommonHorizon:
    """Return the common horizon of replays.

    It is the one asked for, or as many rounds as each replay gets all but surely, whatever its policy does: rejection
    and keep accept each of N displays with a probability of at least c, so floor(cN - z sqrt(cN(1 - c))), where z is 3
    for one replay and grows with their number; queue stops by itself at the displays of the rarest action, logging
    after all N. Should a replay end before that, the horizon is where the shortest one ended. Replays that are
    not `comparable` are left out; one at least has a round.
    """
    from scipy.special import ndtri

    asked = asked_horizon(plans)
    lived = comparable(results)
    z = -float(ndtri(_MISSED / sum(plans[i].options.repeats for i in lived)))
    planned = asked or min(_rounds_before_any(plans[i], results[i], z) for i in lived)
    last = min(lived, key=lambda i: results[i].rounds)
    shortest = results[last].rounds
    if planned > shortest or planned < 1:
        short = (
            f"short of the {planned:,} rounds {'asked for' if asked else 'fixed beforehand'}"
            if planned > 0
            else "and on this log no number of rounds is sure beforehand"
        )
        return CommonHorizon(
            shortest,
            False,
            f"{names_of(results)[last]} ended there, {short}, so that the horizon depended on the run and the "
            "intervals of the differences may be too short",
        )
    return CommonHorizon(planned, True, "as asked for" if asked else "fixed from the log alone, before any outcome")


def asked_horizon(plans: Sequence[ReplayPlan]) -> int | None:
    """Return the number of rounds that was asked for, if any: the logging policy's has none."""
    return next((plan.options.horizon for plan in plans if plan.sampler != "logged"), None)


def comparable(results: Sequence[ReplayResult]) -> list[int]:
    """Return which replays are compared: those with rounds that no action without a usable display cut short, if any.

    An action that nobody can replay decides nothing for the others.
    """
    lived = [i for i, result in enumerate(results) if result.rounds]
    return [i for i in lived if not results[i].ended_by] or lived


def first_rounds(plan: ReplayPlan, result: ReplayResult, rounds: int) -> FirstRounds:
    """Return the first rounds of every repeat; rewards observed by the horizon are those observed by this one."""
    table = result.trajectory
    starts = np.searchsorted(to_numpy(table["repeat"]), np.arange(plan.options.repeats))
    numbers = to_numpy(table["display_id"])
    numbers = numbers - plan.before if plan.before else numbers
    displays = tuple(numbers[start : start + rounds] for start in starts)
    if plan.options.reward == "observed":
        return FirstRounds(displays, tuple(observed_rewards(plan, of_repeat) for of_repeat in displays))
    return FirstRounds(displays, tuple(to_numpy(table["reward"])[start : start + rounds] for start in starts))


def _rounds_before_any(plan: ReplayPlan, result: ReplayResult, z: float) -> int:
    n = len(plan.rounds)
    if plan.sampler == "logged":
        return n
    if plan.sampler == "queue":
        return result.rounds
    return sure_rounds(n, least_acceptance(plan.matched, plan.usable), deviations=z)


@dataclass(frozen=True, eq=False)
class Band:
    """A curve and its band, shape (k,) each; nan where it is not known."""

    estimate: _Listed
    low: _Listed
    high: _Listed


@dataclass(frozen=True, eq=False)
class VariantCurve:
    """A variant over the rounds of the common horizon.

    Parameters
    ----------
    rounds
        Checkpoints t, at most 200, shape (k,).
    value
        Mean reward of the first t rounds; the mean over repeats. Its band is the mean of theirs, at the level split
        over them: unlike the interval at the end (`evaluator.estimates.paired`) it holds at all rounds at once.
    regret
        Total regret of the first t rounds against the best fixed action. Both bands are anytime-valid: the whole band
        holds with the level's probability.
    """

    rounds: Annotated[npt.NDArray[np.int64], *array_of(Positive, most=_CHECKPOINTS)]
    value: Band
    regret: Band


def checkpoints(rounds: int) -> npt.NDArray[np.int64]:
    """Return at most 200 rounds, a tenth, a quarter, half and all of them included.

    >>> checkpoints(10).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    return np.unique(-(-np.arange(1, _CHECKPOINTS + 1) * rounds // _CHECKPOINTS))[-_CHECKPOINTS if rounds else 1 :]


def draw_curve(plan: ReplayPlan, result: ReplayResult, lived: FirstRounds) -> VariantCurve:
    """Return the curve of a variant.

    The regret's reference, the value of the best fixed action, and its error are those of the replay's own result.
    Where rewards are those observed by the horizon, this reference belongs to the horizon of the replay: the regret is
    known only where that is the common one.
    """
    rounds = len(lived.displays[0])
    at = checkpoints(rounds)
    alpha = (1.0 - plan.options.level) / plan.options.repeats
    bounds = reward_bounds(plan)
    value, joint = _mean_bands(lived.rewards, at, bounds, (alpha, alpha / 2))
    best = result.best_fixed_action.value
    known = plan.options.reward == "eventual" or len(result.trajectory) == rounds * plan.options.repeats
    times = at if known else np.full(len(at), np.nan)
    regret = Band(
        times * (best.estimate - joint.estimate), times * (best.low - joint.high), times * (best.high - joint.low)
    )
    return VariantCurve(at, value, regret)


def curve_table(curves: Sequence[VariantCurve]) -> pa.Table:
    """Return curves as a table: variant (from 0), round, value and regret with the ends of their bands."""
    return pa.table(
        {
            "variant": pa.array(np.repeat(np.arange(len(curves), dtype=np.int32), [len(c.rounds) for c in curves])),
            "round": np.concatenate([c.rounds for c in curves]),
            **{
                f"{what}{end}": np.concatenate([getattr(getattr(c, what), part) for c in curves])
                for what in ("value", "regret")
                for end, part in (("", "estimate"), ("_low", "low"), ("_high", "high"))
            },
        }
    )


def _mean_bands(
    rewards: Sequence[Floats], at: npt.NDArray[np.int64], bounds: RewardBounds, alphas: Sequence[float]
) -> list[Band]:
    """Return the mean over repeats of their running means, with the band that fails with each probability."""
    mean = np.mean([np.cumsum(x)[at - 1] / at for x in rewards], axis=0)
    sums = [sums_until(at, x, bounds.upper, bounds.lower) for x in rewards]
    ends = ([interval_ends(*of, at, **bounds._asdict(), alpha=alpha) for of in sums] for alpha in alphas)
    return [Band(mean, *(np.mean(end, axis=0) for end in zip(*of, strict=True))) for of in ends]
