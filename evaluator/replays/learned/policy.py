"""What a replay has learned, as a policy that decides: a rollout can start with it instead of with nothing.

It is told of a display its vectors, and which of its actions are eligible.
"""

from __future__ import annotations

import copy
import html
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evaluator.engine.eligible_choice import NO_KEY, best_among
from evaluator.engine.kernels.argmax import LOWEST_FIRST, check_score, tie_key
from evaluator.engine.pending import ACTION, DELAY, nothing_pending, take
from evaluator.errors import EvaluatorError, ParameterError, PolicyError
from evaluator.escape import shortened
from evaluator.log import Log
from evaluator.log.encoder import ContextEncoder
from evaluator.log.schema import to_numpy
from evaluator.options.deployment import EVENT
from evaluator.outputs.atomic import whole_files
from evaluator.outputs.staging import writing
from evaluator.policies import dispatch
from evaluator.policies.base import Policy, Setting
from evaluator.policies.running import blamed, has_random_ties, refuse_choosing_among, reward_unit
from evaluator.replays.learned.file import copied, fill_file, read_file, refuse_unsavable
from evaluator.replays.learned.policy_metadata import LearnedFrom, PolicyContent, summary
from evaluator.replays.rounds.clock import ReplayWindow
from evaluator.replays.rounds.stream import stated_actions

_SAVE_AGAIN = "replay the policy and save it again."
# A display as a mapping of column values, or the vectors that it becomes.
Display: TypeAlias = npt.ArrayLike | Mapping[str, object]
# Indices of actions.
Eligible: TypeAlias = Sequence[int] | npt.NDArray[np.integer]
Truths = npt.NDArray[np.bool_]


@dataclass(eq=False, repr=False)
class LearnedPolicy(PolicyContent):
    """A policy after the last round of its replay, ready for the next one.

    A decision is `choose`; once it has been shown, `displayed`; then `converted` for each conversion that comes, with
    its delay in rounds. Conversions that the replay still held back are revealed in their rounds, so that a learned
    policy that is told the log's next rounds goes on exactly like the replay. To decide without learning, call `choose`
    alone: ``choose(context, greedy=True)`` for what was learned to be best, without what an optimistic policy adds to
    the unknown.

    Where it reads contexts, each of the three takes the display as it is, a mapping of the context columns to their
    values, and encodes it as the log was (`encoder`), or the encoded vector. Where it reads a vector for each action,
    each takes these.

    Parameters
    ----------
    policy
        Description of the policy.
    setting
        Setting that it was told before its first round. Learning ends with its horizon.
    labels
        Labels of the K actions.
    rounds
        Number of rounds that it has lived.
    state, prepared, rng, pending
        State, stream and pending conversions as `evaluator.engine.log_replay.Replay` hands them on; owned by this
        object.
    encoder
        Encoder that turns a display into the context it reads; None where it reads none, or the log did not say.
    learned_from
        Displays that each of its replays went through; empty where its file does not say.
    tie_key
        Key by which equal scores go among the eligible actions of a round that has begun
        (`evaluator.engine.eligible_choice`); -2 before it is drawn.
    """

    _asked: bool = False
    _open: bool = False
    _revealed: float = 0.0

    def __repr__(self) -> str:
        """Return three lines: what it is, what it learned from, how to use it."""
        waiting = int(self.pending.size[0])
        return summary(self.policy, self.setting, self.rounds, waiting, self.encoder, self.learned_from)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def choose(self, context: Display | None = None, *, eligible: Eligible | None = None, greedy: bool = False) -> int:
        """Return the action for a display, and begin a new round of the policy: a randomised one draws anew.

        Its label is ``labels[action]``.

        Parameters
        ----------
        context
            Display, as a mapping of its context columns to their values; or, encoded as in the log it learned from, its
            context, shape (d,), or its action vectors, shape (K, d), or (|E|, d) of the eligible ones alone. Policies
            without contexts look at nothing.
        eligible
            Indices of the actions that can be shown at this display, of which one is chosen as in a replay, whether it
            was ever logged or not. None: all; a policy that learned where not all always were must be told.
        greedy
            Whether to return the action with the largest estimated reward instead, without bonus or draw, among equals
            one at random: the policy that ``--final`` values. It is for showing what was learned; no round is begun.

        Raises
        ------
        ParameterError
            The context has another shape, or is not finite; or the display lacks a column, has one that is unknown, or
            a value that no display of the log could have (`ContextEncoder.encode`); or the policy must be told what is
            eligible, or has no answer where not all is, or `eligible` names no actions.
        PolicyError
            A policy of the user's own raised, chose an impossible action, or says nothing of its estimates; a score
            is NaN; or the policy cannot go on from what it knows.

        Examples
        --------
        >>> from evaluator import load, replay
        >>> learned = replay(load("synthetic", limit=20_000), "delayed-klucb", window=500).learned
        >>> learned.labels[learned.choose()] in learned.labels
        True
        """
        own = told_eligible(self.policy, self.setting, eligible)
        vectors = display_vectors(self.policy, self.setting, self.encoder, context, own)
        with self._going_on():
            self.end_round()
            if greedy:
                return self._greedy(vectors, own)
            if not self.fresh:
                self._begin(among=own is not None)
            self._asked = True
            action = dispatch.choose(self.state, vectors) if own is None else self._best_among(vectors, own)
        if not 0 <= action < self.setting.n_actions:
            raise PolicyError(
                f"{self.policy.name} chose action {action}.",
                remedy=f"actions go from 0 to {self.setting.n_actions - 1}.",
            )
        return action

    def _greedy(self, vectors: npt.NDArray[np.float64], own: Truths | None) -> int:
        if not dispatch.has_estimates(self.state):
            raise PolicyError(
                f"{self.policy.name} says nothing of its estimates, so that none is the largest.",
                remedy="give it a method estimates (evaluator/policies/user.py), or call choose without greedy.",
            )
        if not self.prepared:  # what has come due by now belongs to what was learned
            self._begin(among=self.setting.among)
        values = np.empty(self.setting.n_actions)
        dispatch.estimate(self.state, vectors, values)
        asked = np.arange(len(values)) if own is None else np.flatnonzero(own)
        for k in asked.tolist():
            check_score(values[k], k)
        best = asked[values[asked] == values[asked].max()]
        return int(best[0] if len(best) == 1 else self.rng.choice(best))

    def displayed(self, context: Display | None, action: int) -> None:
        """Tell the policy that its last choice was shown: one round of its life.

        Where it reads a vector for each action, that of the shown one alone, shape (d,), will do for a policy that can
        choose among eligible actions, here and in `converted`.

        Raises
        ------
        ParameterError
            The context has another shape, or the action does not exist.
        PolicyError
            The policy has lived as many rounds as it was told that would come, or cannot go on from what it knows.
        """
        if self.rounds >= self.setting.horizon:
            raise PolicyError(
                f"{self.policy.name} was started for {self.setting.horizon:,} rounds and has lived them.",
                remedy="replay without `horizon`, or on a longer log; without learning, call choose alone.",
            )
        self._check_action(action)
        vectors = shown_vectors(self.policy, self.setting, self.encoder, context, action)
        with self._going_on():
            self.end_round()
            if not self.prepared:
                self._begin(among=self.setting.among)
            dispatch.shown(self.state, vectors, action)
            self.rounds += 1
            self.prepared = self._asked = False
            self._open = True
            held = self.pending
            slot = take(held, self.rounds)
            while slot >= 0:
                action, delay = held.slots[slot, [ACTION, DELAY]].tolist()
                self._tell(held.vector[slot], action, delay, float(held.value[slot]))
                slot = take(held, self.rounds)

    def converted(self, context: Display | None, action: int, *, delay: int, value: float = 1.0) -> bool:
        """Tell the policy of a conversion of the display it showed `delay` rounds before its last one.

        `value` is in the unit of the log it learned from; the policy is told what it was told there.

        Returns
        -------
        bool
            Whether the policy learned from it: a conversion later than its window is never revealed to it.

        Raises
        ------
        ParameterError
            There is no such round, action or context.
        PolicyError
            The policy cannot go on from what it knows.
        """
        if not 0 <= delay < max(self.rounds, 1):
            raise ParameterError(
                f"A delay of {delay} rounds, after {self.rounds} of them.", remedy="0 is the last display's own round."
            )
        self._check_action(action)
        vectors = shown_vectors(self.policy, self.setting, self.encoder, context, action)
        if delay > self.setting.window:
            return False
        unit = reward_unit(self.policy, self.setting)
        with self._going_on():
            self._tell(vectors[action if len(vectors) > 1 else 0], action, delay, value / unit)
        return True

    def copied(self) -> LearnedPolicy:
        """Return a policy that knows the same and shares nothing with this one, its last round closed.

        Raises
        ------
        UsageError
            A plain Python policy keeps what it knows to itself.
        """
        refuse_unsavable(self.policy)
        state = copied(self.policy, self.setting, self.state)
        own = replace(self, state=state, pending=copy.deepcopy(self.pending), rng=copy.deepcopy(self.rng))
        own.end_round()
        return own

    @property
    def spec(self) -> str:
        """Its policy as the command line takes it."""
        return str(self.policy.spec)

    @property
    def fresh(self) -> bool:
        """Whether a round has begun whose choice nobody has asked for yet."""
        return self.prepared and not self._asked

    def save(self, path: str | Path) -> None:
        """Write the policy to a new file that `evaluator.load_policy` reads: arrays and JSON, no pickle.

        Raises
        ------
        OutputExistsError
            The file exists.
        UsageError
            A plain Python policy keeps what it knows to itself.
        """
        path = Path(path)
        with writing(path), whole_files([path]) as (part,):
            fill_file(part, self.content())

    def content(self) -> PolicyContent:
        """Return what its file holds, its last round closed.

        Raises
        ------
        UsageError
            A plain Python policy keeps what it knows to itself.
        """
        refuse_unsavable(self.policy)
        self.end_round()
        return replace(self, prepared=self.fresh, tie_key=self.tie_key if self.fresh else NO_KEY)

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Turn what stops the policy into an error that names it.

        That is a score that is NaN, an error of a user's policy, or what the writer of a file can make impossible.
        """
        try:
            with blamed(self.policy, self.setting.n_actions, np.array([self.rounds])):
                yield
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, EvaluatorError):
                raise
            raise PolicyError(
                f"{self.policy.name} cannot go on from what it knows ({type(error).__name__}: {error}).",
                remedy=_SAVE_AGAIN,
            ) from error

    def _tell(self, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
        dispatch.told(self.state, vector, action, delay, value)
        self._revealed += value

    def end_round(self) -> None:
        """Close the round of the last display: what comes later belongs to the next one."""
        if self._open:
            dispatch.told_sum(self.state, self._revealed)
        self._revealed, self._open = 0.0, False

    def _check_action(self, action: int) -> None:
        if not 0 <= action < self.setting.n_actions:
            raise ParameterError(f"Action {action}.", remedy=f"actions go from 0 to {self.setting.n_actions - 1}.")

    def _begin(self, *, among: bool) -> None:
        """Begin a round, or begin it anew with other draws."""
        (dispatch.begin_among if among else dispatch.begin)(self.state, self.rng)
        self.prepared, self.tie_key = True, NO_KEY

    def _best_among(self, vectors: npt.NDArray[np.float64], own: Truths) -> int:
        """Return the round's choice among the eligible, by the function that replays ask."""
        if self.tie_key == NO_KEY:
            self.tie_key = tie_key(self.rng) if has_random_ties(self.policy) else LOWEST_FIRST
        rows, eligible = stated_actions(own[None], vectors[None])
        return int(best_among(self.state, rows[0], eligible, 0, self.tie_key))


def learned_policy(
    policy: Any,
    setting: Setting,
    labels: tuple[str, ...],
    replay: Any,
    *,
    before: int = 0,
    encoder: ContextEncoder | None = None,
    learned_from: tuple[LearnedFrom, ...] = (),
) -> LearnedPolicy:
    """Return what a `Replay` has learned, which began after `before` rounds. The two share their state."""
    return LearnedPolicy(
        policy=policy,
        setting=setting,
        labels=labels,
        rounds=before + len(replay.displays),
        state=replay.state,
        prepared=replay.prepared,
        rng=replay.rng,
        pending=nothing_pending(0, setting.dimension) if replay.calendar is None else replay.calendar,
        encoder=encoder,
        learned_from=learned_from,
        tie_key=replay.tie_key,
    )


def displays_of(
    log: Log, before: int, read: int, window: ReplayWindow, taught_by: str, learns: str = EVENT, explored: str = ""
) -> LearnedFrom | None:
    """Return which displays a replay goes through that reads so many of a log; None where it reads none.

    So many displays of the whole log come `before` it; `taught_by` is what the policy learns from, and `learns` and
    `explored` are as of `LearnedFrom`.
    """
    if not read:
        return None
    first, last = to_numpy(log.take(np.array([0, read - 1]), ["time"])["time"]).tolist()
    return LearnedFrom(
        log=log.meta.name,
        fingerprint=log.meta.fingerprint,
        displays=before + len(log),
        first_display=before,
        end_display=before + read,
        first_time=first,
        last_time=last,
        window=window.text,
        taught_by=taught_by,
        learns=learns,
        explored=explored,
    )


def load_policy(path: str | Path, *, policy: Policy | None = None) -> LearnedPolicy:
    """Read a policy that `LearnedPolicy.save` or ``evaluate replay --save-policy`` wrote.

    Parameters
    ----------
    path
        Path of the file.
    policy
        Class of your own, or its description, where no installed package registers it; with the parameters it was saved
        with. None: a file names policies of this package and of installed ones, and nothing else is imported.

    Returns
    -------
    LearnedPolicy
        Policy that goes on as if it had never been saved.

    Raises
    ------
    SourceError
        There is no such file, or it is damaged, or not one of a learned policy, or of another version's state; or it
        says what cannot be: more actions than it names, a conversion of a round to come, an estimate that is not a
        number.
    UnknownNameError, ParameterError
        The policy is not known here, or `policy` is another one.
    """
    return LearnedPolicy(**vars(read_file(Path(path), policy)))


def told_eligible(policy: Any, setting: Setting, eligible: Eligible | None) -> Truths | None:
    """Return which actions are eligible, shape (K,); None where all are and the policy knows nothing else.

    Raise ParameterError if they are not the indices of one or more actions, or a policy must be told them, or has no
    answer to them.
    """
    if eligible is None:
        if setting.among:
            raise ParameterError(
                f"{policy.name} learned from a log in which not every action is always eligible: say which are.",
                remedy="give their indices: choose(display, eligible=[0, 2]).",
            )
        return None
    stated, k = np.asarray(eligible), setting.n_actions
    whole = stated.ndim == 1 and stated.size > 0 and stated.dtype.kind in "iu"
    if not whole or stated.min() < 0 or stated.max() >= k:
        raise ParameterError(
            f"`eligible` is {shortened(repr(eligible))}.",
            remedy=f"give the indices of one action or more, from 0 to {k - 1}: eligible=[0, 2].",
        )
    own = np.zeros(k, np.bool_)
    own[stated] = True
    if own.all() and not policy.among:
        return None
    refuse_choosing_among(policy, "`eligible` leaves some out")
    return own


def display_vectors(
    policy: Any, setting: Setting, encoder: ContextEncoder | None, context: Display | None, own: Truths | None = None
) -> npt.NDArray[np.float64]:
    """Return the vectors of a display as a caller gives it, shape (1, 0), (1, d) or (K, d).

    Where some actions alone are eligible (`own`, shape (K,)), vectors may be theirs alone, in their order, and those of
    the others are 0. Raise ParameterError if the context has another shape, is not finite or cannot be encoded.
    """
    rows = setting.rows
    if rows == 0:
        return np.zeros((1, 0))
    if isinstance(context, Mapping):
        context = _encoded(policy.name, setting, encoder, context)
    shape = setting.context_shape
    vectors = np.array(np.nan if context is None else context, np.float64)
    part = None if own is None or rows == 1 else (int(own.sum()), setting.dimension)
    if vectors.shape not in (shape, part) or not np.isfinite(vectors).all():
        or_part = "" if part is None else f" (or {part}, those of the eligible)"
        raise ParameterError(
            f"{policy.name} reads {'a context' if rows == 1 else 'action vectors'} of shape {shape}{or_part}, finite; "
            f"got shape {vectors.shape}.",
            remedy="encode it as the log's"
            + ("." if encoder is None else ", or give the display itself, a value for each context column."),
        )
    if vectors.shape == shape or own is None:
        return vectors.reshape(rows, setting.dimension)
    whole = np.zeros(shape)
    whole[own] = vectors
    return whole


def shown_vectors(
    policy: Any, setting: Setting, encoder: ContextEncoder | None, context: Display | None, action: int
) -> npt.NDArray[np.float64]:
    """Return the vectors of a display that showed this action: its own alone where displays have their own sets."""
    alone = setting.rows > 1 and not isinstance(context, Mapping) and np.ndim(np.asarray(context)) == 1
    if alone and policy.among:
        return display_vectors(policy, replace(setting, rows=1), None, context)
    vectors = display_vectors(policy, setting, encoder, context)
    return vectors[action : action + 1] if setting.among and len(vectors) > 1 else vectors


def _encoded(
    policy: str, setting: Setting, encoder: ContextEncoder | None, display: Mapping[str, object]
) -> npt.ArrayLike:
    if encoder is not None:
        return encoder.encode(display)
    if setting.rows > 1:
        raise ParameterError(
            f"{policy} reads a vector for each action, which no columns of a display are.",
            remedy=f"give the action vectors, shape {setting.context_shape}.",
        )
    raise ParameterError(
        f"The log that {policy} learned from does not say how its contexts were encoded: it was made by "
        "hand, or converted or replayed by an earlier version.",
        remedy=f"convert it again, replay and save; or give the encoded context, shape {setting.context_shape}.",
    )
