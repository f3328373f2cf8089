"""Replays of resampled logs: how much the value of a learning policy changes from log to log and seed to seed.

A resampled log is an endless stream of displays drawn with replacement, each with all that belongs to it: context,
action, propensity, conversions and their delays. It goes through the log block by block, as many draws as a block has
displays, in the order in which they were drawn; then through the log once more. Each replay reads as much of the
stream as it needs for the rounds of the original one, with streams of its own for thinning and policy. All policies
read the same resampled logs.

Why draws, and not the log's order with each display repeated: copies of a display that follow one another show a
policy that still explores the same reward several times in a row, which the world would not do. Drawing across the
whole log would undo that too, but not on a log that stays on disk, and it would undo the log's drift. Where displays
hang together, whole clusters of them are drawn (below).

*Clusters.* As many clusters as the log has are drawn from them with replacement, once for each time through the log:
the cluster bootstrap (Davison, Hinkley. Bootstrap Methods and their Application, 1997: Section 3.8; Field, Welsh.
Bootstrapping clustered data. Journal of the Royal Statistical Society B 69(3), 2007). A display comes as often as its
cluster was drawn, in its block of the log. Where in the block? Copies of one display that follow one another would show
a policy the same reward several times in a row, and a block in random order would tear apart displays that came
together: the first rounds of a log whose users come one after the other are few users' rounds, and so they must be in a
resampled log. So each copy of a cluster's part of a block is shifted as a whole by a random number of displays, around
the end of the block: its displays keep their distances, and its copies come at different places. Where every display is
a cluster of its own, this is the draw of single displays in random order. Of 95 % intervals of expected values,
measured: 96 % hold where users are spread over the log, 93 % where they come one after the other, for there the
resampled values vary a little less than values over logs (`tests/bench/clusters.py`).

Where units keep their action, each copy of one is a unit of its own: its displays do not go around
the end of the block of the first one, which must come before them.

From the values of resampled replays come the intervals of expected values, and of their differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.log_replay import MatchingReplay, QueueReplay, SamplerName, begin
from evaluator.errors import ParameterError
from evaluator.estimates.confidence import Interval, SparseRewards
from evaluator.estimates.standard_errors import effective, spread_interval, too_few
from evaluator.findings.codes import MIXED_HORIZONS, NO_SPREAD, PROPENSITIES_NOT_RESAMPLED, ordered
from evaluator.log.column import Column
from evaluator.log.schema import ELIGIBLE
from evaluator.policies.base import Need
from evaluator.replays.findings.plan import few_clusters_warning
from evaluator.replays.kept_units import KeptRounds, Units
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.rounds.clock import KnownDelays, SeenDelays, even_conversions, seen_delays, told_delays
from evaluator.replays.rounds.propensity import Thinning, resolve_propensities, thinning
from evaluator.replays.rounds.stream import GatheredDisplays, LogOrder, LogPiece, blocks, gather
from evaluator.replays.values.rewards import References, observed_rewards
from evaluator.streams import STEP, Stream, mixed, random_stream

# Displays among which draws are made; no result depends on how the log is read.
BLOCK = 65_536
# Drawn displays put together at a time: replays that have their rounds need no more.
_PART = 8_192
# Resampled logs replayed in one scan; those whose replays keep a queue are as many as there are threads.
TOGETHER = 16
# Rounds that the replays of one scan hold, 8 bytes each, where that leaves a resampled log for each thread.
_ROUNDS = 16_000_000
# In the place of the lap: what was known of the delays before the log.
_KNOWN = 2
Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
# Odd numbers that spread consecutive ones over 64 bits.
_OF_CLUSTER, _OF_COPY = STEP, np.uint64(0xD1342543DE82EF95)
# Sampler of the logging policy.
LOGGED: SamplerName = "logged"


class Lived(NamedTuple):
    """How far an original replay came: rounds, and displays read for them; and after how many rounds it is compared."""

    rounds: int
    read: int
    compared: int = 0


class Draws(NamedTuple):
    """Mean rewards per round of the replays of some resampled logs, shape (logs, plans) each.

    Whether all repeats of a plan reached the rounds of the original replays is `complete`. Of the first rounds, as many
    as replays are compared by, the means are `compared`; nan where none are.
    """

    values: Floats
    complete: npt.NDArray[np.bool_]
    compared: Floats

    def of(self, plan: int, clusters: float | None) -> ResampledValues:
        """Return what these say of a plan, by its index, whose rounds are worth so many clusters."""
        return ResampledValues(self.values[:, plan], int((~self.complete[:, plan]).sum()), clusters)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A plan, how far its original replays came, and what displays earn; None where that depends on the rounds."""

    plan: ReplayPlan
    lived: Sequence[Lived]
    rewards: SparseRewards | None

    def with_plan(self, plan: ReplayPlan) -> _Asked:
        """Return the same as a resampled log makes it; what displays earn depends on the correction of young ones."""
        rewards = self.rewards if plan.maturity is self.plan.maturity else _rewards(plan, References())
        return replace(self, plan=plan, rewards=rewards)


class Resampling:
    """Replays of plans on resampled logs, each as long as the original ones `lived`. Cost of each: as of the originals.

    Memory: a few blocks, and 8 bytes a round of the replays of one scan, at most `_ROUNDS` of them or those of one
    resampled log for each thread.

    What is estimated is estimated anew on each resampled log: the delay CDF that a policy is told, propensities by
    frequencies, and the correction of immature displays. The horizon that a policy was told stays as it was. A value
    depends on its plan and on the number of the resampled log, and not on what else is replayed beside it.
    """

    def __init__(self, plans: Sequence[ReplayPlan], lived: Sequence[Sequence[Lived]]) -> None:
        references = References()
        self._asked = [_Asked(plan, of, _rewards(plan, references)) for plan, of in zip(plans, lived, strict=True)]

    def draws(self, numbers: range, *, jobs: int = 1, advance: Callable[[int], None] = lambda displays: None) -> Draws:
        """Replay all plans on the resampled logs with these numbers, from 0, in steps of 1.

        No result depends on the number of threads `jobs`; `advance` is called with the displays drawn since the last
        call.
        """
        shape = len(numbers), len(self._asked)
        values, complete, compared = np.full(shape, np.nan), np.zeros(shape, np.bool_), np.full(shape, np.nan)
        with ThreadPoolExecutor(jobs) as pool:
            for queued in (False, True):
                chosen = [i for i, one in enumerate(self._asked) if (one.plan.sampler == "queue") == queued]
                rounds = sum(lived.rounds for i in chosen for lived in self._asked[i].lived)
                together = jobs if queued else max(min(TOGETHER, _ROUNDS // max(rounds, 1)), jobs)
                for start in range(0, len(numbers) if chosen else 0, together):
                    logs = [
                        _ResampledLog(b, [self._asked[i] for i in chosen]) for b in numbers[start : start + together]
                    ]
                    _estimate_anew(logs)
                    _read(logs, pool, advance)
                    found = list(pool.map(_ResampledLog.values, logs))
                    for column, into in enumerate((values, complete, compared)):
                        into[start : start + len(logs), chosen] = [[one[column] for one in of] for of in found]
        return Draws(values, complete, compared)


def _read(logs: Sequence[_ResampledLog], pool: ThreadPoolExecutor, advance: Callable[[int], None]) -> None:
    """Read each resampled log as far as its replays need, at most twice through the log."""
    plans = [asked.plan for asked in logs[0].asked]
    reads = [c for log in logs for thinning in log.thinnings for c in thinning.propensities.reads]
    sets = [ELIGIBLE for plan in plans if plan.rounds.playable is not None]
    columns = list(dict.fromkeys(["action", *reads, *sets]))
    vectors = list(dict.fromkeys(plan.rounds.vectors for plan in plans if plan.rounds.vectors is not None))
    last = max(plan.rounds.used for plan in plans)
    for lap in range(2):
        reading = [log for log in logs if log.begin_lap(lap)]
        for piece in blocks(plans[0].log, columns, vectors, BLOCK) if reading else ():
            if piece.first >= last or not reading:
                break
            list(pool.map(lambda log: log.read(piece), reading))  # noqa: B023
            if lap == 0:
                advance(min(len(piece.action), last - piece.first) * len(reading))
            reading = [log for log in reading if not log.done]


def _estimate_anew(logs: Sequence[_ResampledLog]) -> None:
    """Estimate on each resampled log what was estimated on the log itself."""
    plans = [asked.plan for asked in logs[0].asked]
    refits = any(map(rests_on_delays, plans))
    if not refits and not any(map(rests_on_frequencies, plans)):
        return
    survey, teachers = plans[0].survey, {id(plan.teacher): plan.teacher for plan in plans}
    surveys = {id(survey): survey, **teachers} if refits else {}
    shown = [np.zeros(survey.log.n_actions, np.int64) for _ in logs]
    times = [{key: np.zeros(len(one.display), np.int32) for key, one in surveys.items()} for _ in logs]
    draws = [log.drawing(0) for log in logs]
    for piece in blocks(survey.log, ["action"], [], BLOCK):
        n = len(piece.action)
        own = {key: np.searchsorted(one.display, [piece.first, piece.first + n]) for key, one in surveys.items()}
        for i, draw in enumerate(draws):
            drawn = np.bincount(draw(piece.first, n), minlength=n)
            shown[i] += np.bincount(piece.action, weights=drawn, minlength=len(shown[i])).astype(np.int64)
            for key, (low, high) in own.items():
                times[i][key][low:high] = drawn[surveys[key].display[low:high] - piece.first]
    for log, counts, copies in zip(logs, shown, times, strict=True):
        seen: dict[tuple[object, ...], SeenDelays] = {}
        log.asked = [
            asked.with_plan(refitted(asked.plan, counts, copies, log.draws(_KNOWN), seen)) for asked in log.asked
        ]


def _rewards(plan: ReplayPlan, references: References) -> SparseRewards | None:
    return None if plan.options.reward == "observed" else references.logged(plan, 0)


def _nothing_drawn(first: int, n: int) -> Numbers:
    return np.zeros(0, np.int64)


def _drawn(rng: np.random.Generator, n: int) -> Numbers:
    return rng.integers(0, n, n)


class _ResampledLog:
    """One resampled log, by its number b, and the replays that read it."""

    def __init__(self, number: int, asked: list[_Asked]) -> None:
        self.number = number
        self.asked = asked
        self._runs: list[_ResampledRun] = []
        self._draw: Callable[[int, int], Numbers] | ClusterDraws = _nothing_drawn
        self._units_before = 0

    @property
    def thinnings(self) -> list[Thinning]:
        """How the plans thin the log."""
        return [thinning for asked in self.asked for thinning in asked.plan.thinnings]

    @property
    def kept(self) -> KeptRounds | None:
        """When the displays of units that keep their action are rounds; None where no unit does."""
        return next((asked.plan.kept for asked in self.asked if asked.plan.kept is not None), None)

    @property
    def done(self) -> bool:
        """Whether no replay needs another display."""
        return all(run.done for run in self._runs)

    def draws(self, lap: int, *more: int) -> np.random.Generator:
        """Return the stream that draws displays in a lap through the log, or, for a repeat, that thins them."""
        seed = self.asked[0].plan.options.seed
        return random_stream(Stream.RESAMPLED_LOG, seed, self.number, lap, *more)

    def drawing(self, lap: int) -> Callable[[int, int], Numbers] | ClusterDraws:
        """Return what draws from the blocks of a lap, one after the other: from (first display, displays)."""
        rng, clusters = self.draws(lap), self.asked[0].plan.clusters
        units = None if self.kept is None else self.kept.units
        return (lambda first, n: _drawn(rng, n)) if clusters is None else ClusterDraws(clusters, rng, units)

    def begin_lap(self, lap: int) -> bool:
        """Get ready to go through the log; return whether that is needed."""
        repeats = self.asked[0].plan.options.repeats
        if lap == 0:
            self._runs = [
                _ResampledRun(asked, self.number, repeat) for asked in self.asked for repeat in range(repeats)
            ]
        for run in self._runs:
            run.laps = lap
        if lap and isinstance(self._draw, ClusterDraws):
            self._units_before = self._draw.n_units
        self._draw = self.drawing(lap)
        self._thins = [self.draws(lap, repeat) for repeat in range(repeats)]
        if self.kept is not None:  # a unit is thinned out as a whole
            self._key = self._thins[0].integers(2**64, dtype=np.uint64)
        self._orders = [self._order(lap, repeat) for repeat in range(1, repeats)]
        return not self.done

    def _order(self, lap: int, repeat: int) -> LogOrder:
        """Return the order in which a repeat other than the first reads the log, as it does the original one."""
        seed = self.asked[0].plan.options.seed
        return LogOrder(random_stream(Stream.RESAMPLED_ORDER, seed, self.number, lap, repeat))

    def read(self, piece: LogPiece) -> None:
        """Draw from a block of displays, and hand them to the replays."""
        unit = None
        if self.kept is not None and isinstance(self._draw, ClusterDraws):
            as_drawn, unit = self._draw.with_units(piece.first, len(piece.action))
            unit += self._units_before
        else:
            as_drawn = self._draw(piece.first, len(piece.action))
        n = len(as_drawn)
        orders = [as_drawn, *(as_drawn[order.next(n)] for order in self._orders)]
        uniform = [rng.random(n) for rng in self._thins] if unit is None else [_draws_of(unit, self._key)]
        shared: dict[tuple[object, ...], list[_ResampledRun]] = {}
        for run in self._runs:
            if not run.done:
                shared.setdefault(run.key, []).append(run)
        for runs in shared.values():
            drawn, draws = orders[runs[0].repeat], uniform[runs[0].repeat]
            kept = _kept(piece, drawn, runs[0], draws)
            own, draws = drawn[kept], draws[kept]
            own_unit = None if unit is None else unit[kept]
            for run in runs:
                if run.follows:
                    run.follow(piece.first + own)
            runs = [run for run in runs if not run.follows]
            vectors = {run.plan.rounds.vectors for run in runs}
            for at in range(0, len(own) if runs else 0, _PART):
                part = own[at : at + _PART]
                runs = [run for run in runs if not run.done]
                if not runs:
                    break
                gathered = gather(piece, piece.action, part, vectors)
                of_part = None if own_unit is None else own_unit[at : at + _PART]
                for run in runs:
                    run.read(piece.first + part, gathered, of_part, run.as_logger(piece, part, draws[at : at + _PART]))

    def values(self) -> list[tuple[float, bool, float]]:
        """Return the value of each plan over all its repeats' rounds, whether all reached these, and over the first."""
        repeats = self.asked[0].plan.options.repeats
        runs, self._runs = self._runs, []
        return [_mean_over(runs[at : at + repeats]) for at in range(0, len(runs), repeats)]


def _mean_over(repeats: Sequence[_ResampledRun]) -> tuple[float, bool, float]:
    values, compared = zip(*(run.values() for run in repeats), strict=True)
    rounds = [run.rounds for run in repeats]
    whole = float(np.average(values, weights=rounds)) if min(rounds) else float("nan")
    return whole, all(run.complete for run in repeats), float(np.mean(compared))


def _kept(piece: LogPiece, drawn: Numbers, run: _ResampledRun, uniform: Floats) -> npt.NDArray[np.bool_]:
    """Return which drawn displays are used and left by the thinning."""
    kept: npt.NDArray[np.bool_] = piece.first + drawn < run.used
    matched = run.plan.matched
    if not matched.keeps_all:
        columns = {name: piece.displays[name][drawn] for name in ("action", *matched.propensities.reads)}
        kept &= matched.kept(columns, uniform)
    return kept


class _ResampledRun:
    """One replay of a resampled log."""

    def __init__(self, asked: _Asked, number: int, repeat: int) -> None:
        self.plan = plan = asked.plan
        self.repeat = repeat
        original = asked.lived[repeat]
        self.rounds, self._compared = original.rounds, original.compared
        # Young displays weigh more and are the last of the log: no more of them than the original replay read.
        young = plan.maturity.correction is not None and plan.sampler != "queue"
        self.used = original.read if young else plan.rounds.used
        self._rewards = asked.rewards
        options, setting = plan.options, plan.setting
        if plan.sampler == "queue" and options.horizon is None:
            setting = replace(setting, horizon=self.rounds)  # what the original replay was told
        # Repeats 0 to R - 1 are the original replays.
        stream = (number + 1) * options.repeats + repeat
        self._replaying: MatchingReplay | QueueReplay = begin(
            plan.policy,
            setting,
            sampler=plan.sampler,
            seed=options.seed,
            repeat=stream,
            begun=None if plan.start is None else plan.start.begun(stream),
            pushes=plan.pushes,
            explores=plan.explores,
            keeps=plan.keeps,
        )
        # As narrow as the log's numbers allow: there are millions of them.
        self._number: npt.DTypeLike = np.int32 if len(plan.log) < 2**31 else np.int64
        self._displays: list[Numbers] = []
        self._accepted = 0
        self._queued = np.zeros(setting.n_actions, np.int64)
        self.laps = 0

    @property
    def key(self) -> tuple[object, ...]:
        """What tells one thinned resampled log from another."""
        matched = self.plan.matched
        if matched.keeps_all:
            return self.used, self.repeat
        return self.used, self.repeat, id(matched.propensities.rule), matched.c.tobytes()

    @property
    def done(self) -> bool:
        """Whether T rounds are reached; for queues, whether the whole log was drawn, and none can run dry before."""
        if isinstance(self._replaying, QueueReplay):
            return self.laps > 0 and bool((self._queued >= self.rounds)[self.plan.survey.shown > 0].all())
        return self._accepted >= self.rounds

    @property
    def complete(self) -> bool:
        """Whether T rounds were reached."""
        return self._accepted >= self.rounds

    @property
    def follows(self) -> bool:
        """Whether every display is a round, so that nothing has to be replayed: the logging policy's."""
        return self.plan.sampler == LOGGED

    def follow(self, displays: Numbers) -> None:
        """Take the next displays, which have these numbers in the log, for rounds."""
        self._displays.append(displays.astype(self._number))
        self._accepted += len(displays)

    def as_logger(self, piece: LogPiece, drawn: Numbers, uniform: Floats) -> npt.NDArray[np.int32] | None:
        """Return the actions of some displays as the rounds read them in which the logging policy chooses."""
        thinning = self.plan.as_logger
        if thinning is None:
            return None
        columns = {name: piece.displays[name][drawn] for name in ("action", *thinning.propensities.reads)}
        return np.where(thinning.kept(columns, uniform), piece.action[drawn], np.int32(-1))

    def read(
        self,
        displays: Numbers,
        gathered: GatheredDisplays,
        unit: Numbers | None = None,
        as_logger: npt.NDArray[np.int32] | None = None,
    ) -> None:
        """Replay the next displays, which have these numbers in the log, and these units in the resampled one.

        `as_logger` is as of `MatchingReplay.read`.
        """
        batch = gathered.batch(self.plan.rounds)
        if isinstance(self._replaying, QueueReplay):
            self._replaying.read(0, batch)
            self._displays.append(displays)
            self._queued += np.bincount(batch.action, minlength=len(self._queued))
        else:
            if self.plan.kept is None or unit is None:
                accepted = displays[self._replaying.read(0, batch, as_logger)]
            else:
                accepted = self._replaying.read(0, batch, kept=self.plan.kept.of(displays, batch.action, unit))
            self._displays.append(accepted.astype(self._number))
            self._accepted += len(accepted)

    def values(self) -> tuple[float, float]:
        """Return the mean reward of the first T rounds, and of those that are compared."""
        shown = np.concatenate([np.zeros(0, self._number), *self._displays])
        if isinstance(self._replaying, QueueReplay):
            shown = shown[self._replaying.result().displays]
            self._accepted = len(shown)
        whole = self._mean(shown[: self.rounds])
        return whole, whole if self._compared == self.rounds else self._mean(shown[: self._compared])

    def _mean(self, shown: Numbers) -> float:
        if not len(shown):
            return float("nan")
        if self._rewards is None:
            return float(observed_rewards(self.plan, shown).mean())
        return float(self._rewards.taken(shown).mean())


def rests_on_delays(plan: ReplayPlan) -> bool:
    """Whether a replay depends on delays that were fitted to this log."""
    return plan.maturity.correction is not None or _told_fit(plan)


def rests_on_frequencies(plan: ReplayPlan) -> bool:
    """Whether a replay depends on propensities that are frequencies of this log."""
    return plan.options.propensity == "estimate" and plan.sampler != "logged" and not plan.matched.keeps_all


def refitted(
    plan: ReplayPlan,
    shown: npt.NDArray[np.int64],
    times: Mapping[int, npt.NDArray[np.integer]],
    rng: np.random.Generator,
    seen: dict[tuple[object, ...], SeenDelays],
) -> ReplayPlan:
    """Return a plan as a resampled log makes it, of whose actions so many displays are `shown`, shape (K,).

    Each of a survey's events is there `times` times, shape (c,), by its identity; `rng` draws from the delays known
    before the log. Delays that are `seen` are those of all plans of the resampled log that ask for the same.
    """
    if _told_fit(plan):
        known = None if plan.known is None else plan.known.drawn(rng)
        by = (id(plan.teacher), id(plan.known), id(plan.told), plan.clock, plan.window, plan.options.seed)
        if by not in seen:
            seen[by] = seen_anew(plan, known, times[id(plan.teacher)])
        told = told_delays(seen[by], delays="log", horizon=plan.setting.horizon)
        if told is not None:  # else no conversion was drawn
            plan = replace(plan, setting=replace(plan.setting, delay_cdf=told))
    if plan.maturity.correction is not None:
        correction = plan.maturity.correction.refitted(plan.survey, times[id(plan.survey)])
        plan = replace(plan, maturity=replace(plan.maturity, correction=correction))
    if rests_on_frequencies(plan):
        propensities = resolve_propensities(replace(plan.survey, shown=shown), "estimate")
        matched = thinning(plan.log, propensities, per_action=plan.sampler in ("keep", "queue"))
        if plan.options.accept_quantile > 0:
            matched = replace(matched, c=plan.matched.c)
        plan = replace(plan, matched=matched)
    return plan


def _told_fit(plan: ReplayPlan) -> bool:
    fits = plan.options.delays == "log" and plan.start is None
    return Need.DELAY_CDF in plan.policy.needs and fits and plan.setting.delay_cdf is not None


class ClusterDraws:
    """What one resampled log has drawn, for one time through the log, from one stream. Memory: 2 bytes a cluster.

    With `units` that keep their action, 8 bytes a unit more.
    """

    def __init__(self, clusters: Column, rng: np.random.Generator, units: Units | None = None) -> None:
        g = clusters.count
        self._code = clusters.code
        self._copies = np.bincount(rng.integers(0, g, g), minlength=g).astype(np.uint16)
        self._rng = rng
        self._units = units
        self._numbers, self.n_units = np.zeros(0, np.int64), 0
        if units is not None:
            copies = self._copies[clusters.code[units.first]].astype(np.int64)
            self._numbers, self.n_units = np.cumsum(copies) - copies, int(copies.sum())

    def __call__(self, first: int, n: int) -> Numbers:
        """Return the displays drawn from the next block, `n` from number `first` on: theirs within it, in order."""
        return self._drawn(first, n)[0]

    def with_units(self, first: int, n: int) -> tuple[Numbers, Numbers]:
        """Return the same, and the numbers of their units: each copy of one is a unit of its own."""
        assert self._units is not None
        at, copy = self._drawn(first, n)
        return at, self._numbers[self._units.code[first + at]] + copy

    def _drawn(self, first: int, n: int) -> tuple[Numbers, Numbers]:
        code = self._code[first : first + n]
        copies = self._copies[code].astype(np.int64)
        at = np.repeat(np.arange(n), copies)
        copy = np.arange(len(at)) - np.repeat(np.cumsum(copies) - copies, copies)
        key = self._rng.integers(2**64, dtype=np.uint64)
        step = np.uint64((2**64 - 1) // n)
        with np.errstate(over="ignore"):
            shift = mixed(code[at].astype(np.uint64) * _OF_CLUSTER + copy.astype(np.uint64) * _OF_COPY + key)
            place = at.astype(np.uint64) * step + shift
            if self._units is None:
                order = np.argsort(place, kind="stable")
            else:
                begun = self._units.first[self._units.code[first : first + n]] - first
                begun = np.where(begun < 0, np.arange(n), begun)[at]
                order = np.lexsort((place, place < begun.astype(np.uint64) * step + shift))
        return at[order], copy[order]


def _draws_of(unit: Numbers, key: np.uint64) -> Floats:
    """Return a uniform draw for each display, that of its unit."""
    with np.errstate(over="ignore"):
        return np.asarray((mixed(unit.astype(np.uint64) * STEP + key) >> np.uint64(11)) * 2.0**-53, np.float64)


def seen_anew(plan: ReplayPlan, known: KnownDelays | None, times: npt.NDArray[np.integer]) -> SeenDelays:
    """Return the delays whose CDF a plan's policy is told on a resampled log.

    `known` are the delays known before the log, resampled, if no more is told. Each event that teaches is there `times`
    times, shape (c,).
    """
    survey, clock, window = plan.told, plan.clock, plan.window
    if known is not None:
        return known.on(clock, window)
    if survey is not plan.teacher:
        until = survey.log.meta.observed_until
        assert until is not None  # when the displays began that are left out
        when = plan.teacher.shown_at + plan.teacher.delay_ticks
        times = times[(plan.teacher.display < len(survey.log)) & (when <= until)]
    even = np.arange(len(times))[even_conversions(survey.log, survey.display, plan.options.seed)]
    return seen_delays(survey, clock, window, np.repeat(even, times[even]))


@dataclass(frozen=True, eq=False)
class ResampledValues:
    """Values of one plan's replays of resampled logs, shape (B,): mean reward per round.

    In `short` of them the rounds were not reached. The rounds are worth so many clusters of equal size; None where
    displays were drawn one by one.
    """

    values: npt.NDArray[np.float64]
    short: int
    clusters: float | None


def clusters_shown(plan: ReplayPlan, displays: Sequence[npt.NDArray[np.int64]]) -> float | None:
    """Return how many clusters of equal size the displays of a plan's repeats are worth, the fewest of them."""
    if plan.clusters is None:
        return None
    return min(effective(plan.clusters.code[shown]) for shown in displays)


def with_expected_value(result: ReplayResult, resampled: ResampledValues) -> ReplayResult:
    """Return a result with the interval that the resampled values give its expected value."""
    values, short = resampled.values, resampled.short
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        none = NO_SPREAD.found(
            f"No interval of the expected value: all {len(values):,} resampled replays earned the same, and a width of "
            "0 would call known what did not show."
        )
        return replace(result, resampled=tuple(values.tolist()), findings=ordered((*result.findings, none)))
    target = f"expected value of the learning policy at {result.rounds:,} rounds"
    clusters = resampled.clusters
    interval = spread_interval(
        result.value.estimate, values, n=result.value.n, level=result.plan["options"]["level"], target=target,
        clusters=clusters,
    )  # fmt: skip
    said = list(result.findings)
    if short:
        said.append(
            MIXED_HORIZONS.found(
                f"{short:,} of {len(values):,} resampled replays ended before their rounds were reached: the "
                "interval of the expected value mixes horizons.",
                short=short,
            )
        )
    if result.plan["options"]["propensity"] == "estimate:context":
        said.append(
            PROPENSITIES_NOT_RESAMPLED.found(
                "The interval of the expected value takes the estimated propensities as given: it is too short."
            )
        )
    if too_few(clusters):
        said.append(few_clusters_warning("the expected value", clusters, result.plan["clusters"]["by"]))
    return replace(
        result, expected_value=interval, resampled=tuple(values.tolist()), clusters=clusters, findings=ordered(said)
    )


def expected_differences(
    results: Sequence[ReplayResult], *, baseline: int = 0, level: float | None = None, times: float = 1.0
) -> tuple[Interval, ...]:
    """Return expected value minus that of a baseline for each result, at the horizon that all share.

    The logging policy has none: its value is the mean of a log. The values of both come from the same resampled logs,
    so what the two have in common cancels. Of the baseline's value so many `times` are subtracted; its own difference
    is 0. The level is that of the replays where it is None.

    Raise ParameterError if there was no bootstrap, or policies other than the logging one have different numbers of
    rounds: their values then are expectations at different horizons.
    """
    if len({len(result.resampled) for result in results}) != 1 or not results[0].resampled:
        raise ParameterError("There are no common resampled replays.", remedy="replay all with the same `bootstrap`.")
    horizons = {result.rounds for result in results if result.plan["sampler"] != LOGGED}
    if len(horizons) > 1:
        raise ParameterError("The replays have different numbers of rounds.", remedy="give a common `horizon`.")
    of = results[baseline]
    return tuple(
        spread_interval(
            result.value.estimate - times * of.value.estimate,
            np.subtract(result.resampled, times * np.asarray(of.resampled)),
            n=result.value.n,
            level=result.plan["options"]["level"] if level is None else level,
            target=f"difference of expected values at {max(horizons, default=of.rounds):,} rounds",
            clusters=None if of.clusters is None or result.clusters is None else min(of.clusters, result.clusters),
        )
        for result in results
    )
