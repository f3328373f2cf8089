"""What a policy is: a description with parameters, from which a state is started."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.errors import ParameterError
from evaluator.options.declaration import Wording, checked, declaration, kinds_of, option
from evaluator.results.json_documents import JsonDocument, Plain, Text
from evaluator.units import NO_WINDOW


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a policy is told before its first round.

    Parameters
    ----------
    n_actions
        Number of actions K.
    dimension
        Length d of the vectors; 0 for a log without contexts.
    rows
        Number of vectors of a display: 1 when all actions see its context, K when each has its own vector, 0 without
        contexts.
    window
        Window m in rounds; `NO_WINDOW` when nothing is cut off.
    horizon
        Largest number of rounds that may come.
    delay_cdf
        Delay CDF on the clock of the rounds, for policies that need it; None for others.
    reward_max
        Largest reward of one display, all its conversions together, in the log's own unit: the `reward_max` of the log,
        or the largest that a display earns in it.
    reward_min
        Smallest reward of one display: below 0 where refunds may be more than sales, or displays cost something.
    playable
        Number of actions that are ever eligible and logged, where displays have their own eligible actions; None where
        all of the K always are.
    waits
        Most rounds in a row that the policy does not learn from before the next one, or whose actions it does not
        choose: where it learns at pushes, or the deployment explores first.
    """

    n_actions: int
    dimension: int = 0
    rows: int = 0
    window: int = NO_WINDOW
    horizon: int = NO_WINDOW
    delay_cdf: DelayCDF | None = None
    reward_max: float = 1.0
    reward_min: float = 0.0
    playable: int | None = None
    waits: int = 0

    @property
    def among(self) -> bool:
        """Whether displays have their own eligible actions."""
        return self.playable is not None

    @property
    def arms(self) -> int:
        """Number of actions that a policy can ever show: K of its widths and horizons."""
        return self.n_actions if self.playable is None else self.playable

    @property
    def context_shape(self) -> tuple[int, ...]:
        """Shape of what a policy reads of a display: (d,), (K, d) for action vectors, () for nothing."""
        return ((), (self.dimension,), (self.rows, self.dimension))[min(self.rows, 2)]

    @property
    def blocks(self) -> int:
        """Blocks of a ridge regression: K when disjoint, 1 when the actions' own vectors are shared."""
        return self.n_actions if self.rows == 1 else 1

    @property
    def coefficients(self) -> int:
        """Number of coefficients of a ridge regression, those of all blocks that can ever be shown."""
        return self.dimension * (self.arms if self.rows == 1 else 1)


class Need(StrEnum):
    """What a policy must be told to work, beside the number of actions; its value is the word that reports print."""

    DELAY_CDF = "delay CDF"
    HORIZON = "horizon"
    WINDOW = "window"

    def missing(self, policy: str, *, because: str = "", instead: str = "") -> ParameterError:
        """Return the error of a setting that lacks it.

        `because` is a clause that says what would happen without it, `instead` one that names another way out, beside
        giving it.

        Examples
        --------
        >>> str(Need.HORIZON.missing("improved-ucb"))
        'improved-ucb needs a horizon. Hint: give `horizon`.'
        """
        ways = ("`delays='log'`", "`delays='geometric:500'`") if self is Need.DELAY_CDF else (f"`{self}`",)
        more = (*ways, instead) if instead else ways
        said = " or ".join(more) if len(more) < 3 else f"{', '.join(more[:-1])}, or {more[-1]}"
        return ParameterError(f"{policy} needs a {self}{f': {because}' if because else ''}.", remedy=f"give {said}.")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Description of a policy: frozen parameters; `start` makes the state that the replay changes.

    A subclass states its parameters as fields made by `parameter`, and implements its state's functions with
    `evaluator.policies.dispatch.implement`. Replaying never changes the description.
    """

    name: ClassVar[str] = ""
    contextual: ClassVar[bool] = False
    # What it does about delays: a cell of the table of policies.
    delays: ClassVar[str] = ""
    # Where it is from: authors, year, place. Empty for a baseline.
    paper: ClassVar[str] = ""
    needs: ClassVar[tuple[Need, ...]] = ()
    # The one column of the displays it reads, where no other vectors will do.
    reads: ClassVar[str] = ""
    # Parameter whose value a spec may give without its name: `target:NAME`.
    first: ClassVar[str] = ""
    # Whether it learns from a zero reward that it is told of, as a conversion of value 0; no log tells of any.
    takes_zeros: ClassVar[bool] = False
    # Whether it is told rewards as shares of the setting's `reward_max` less its `reward_min`, or in the log's own
    # unit. Theory has them in [0, 1]: widths and divergences on that scale make of money a policy that never, or at
    # once, stops exploring. Widths are for a range of length 1, wherever it lies; what needs it from 0 clips.
    unit_rewards: ClassVar[bool] = False
    # Whether sums below 0 count as 0 in its index: a Kullback-Leibler divergence or a Beta law has none of them.
    clips_at_zero: ClassVar[bool] = False
    # Whether it divides all that it was told by the chance of having seen it, costs, which come at once, with the rest.
    divides_by_delays: ClassVar[bool] = False
    # Whether it can be told of a display's cost at once, and of refunds; why not.
    takes_costs: ClassVar[bool] = True
    takes_refunds: ClassVar[bool] = True
    why_not_negative: ClassVar[str] = ""
    # Whether it chooses by draws from a posterior: then the shares of its choices are the posterior's probabilities.
    posterior: ClassVar[bool] = False
    # Whether what it shows depends on what it was told before.
    learns: ClassVar[bool] = True
    # Whether it has an answer where some actions are not eligible; and, of one that says beforehand what it shows, what
    # becomes of an action that is not.
    among: ClassVar[bool] = False
    outside: ClassVar[str] = ""
    note: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check every parameter's type and range."""
        kinds = kinds_of(type(self))
        for field in dataclasses.fields(self):
            where = f"{self.name or type(self).__name__}: parameter {field.name}"
            wording = Wording(where, f"{where} = {{}}", f"{where} = {{}}")
            value = checked(getattr(self, field.name), kinds[field.name], declaration(field), wording)
            object.__setattr__(self, field.name, value)

    def start(self, setting: Setting) -> Any:
        """Return the state before the first round, a NamedTuple of arrays and scalars."""
        raise NotImplementedError

    def on_actions(self, labels: Sequence[str]) -> Self:
        """Return the policy for a log whose actions have these labels."""
        return self

    def shares(self, n_actions: int) -> npt.NDArray[np.float64] | None:
        """Return the probability of each action, shape (K,), where it is the same at all displays; else None."""
        return None

    @property
    def spec(self) -> str:
        """The policy as the command line takes it, parameters that differ from their defaults only.

        >>> from evaluator.policies import resolve
        >>> resolve("otflinucb:alpha=0.5,ridge=1").spec
        'otflinucb:alpha=0.5'
        """
        changed = [
            f"{f.name}={getattr(self, f.name)}" for f in dataclasses.fields(self) if getattr(self, f.name) != f.default
        ]
        return f"{self.name}:{','.join(changed)}" if changed else self.name

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter and its value."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


def parameter(
    default: Any,
    help: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> Any:
    """Declare a parameter: its default, what it does, and its range (`above`/`below` exclude the bound)."""
    return option(default, help, above=above, at_least=at_least, below=below, at_most=at_most)


@dataclass(frozen=True, kw_only=True)
class ParameterDescription:
    """Parameter of a policy.

    Parameters
    ----------
    name
        Name of the parameter.
    type
        Type of its values, or the words that it takes.
    default
        Value that it has by default.
    range
        Range of its values; empty where every value of the type will do.
    help
        Words that say what it does.
    """

    name: str
    type: str
    default: Plain
    range: str
    help: Text


@dataclass(frozen=True, kw_only=True)
class PolicyFacts:
    """What a policy is.

    Parameters
    ----------
    name
        Name of the policy.
    summary
        Sentence that says what it is.
    contextual
        Whether it reads contexts.
    needs
        Facts that it must be told.
    delays
        Phrase that says what it does about delays.
    paper
        Work that it is from; empty for a baseline.
    note
        Sentence that its user must know; empty where there is none.
    parameters
        Parameters of the policy.
    """

    name: str
    summary: str
    contextual: bool
    needs: tuple[Need, ...]
    delays: str
    paper: str
    note: str
    parameters: tuple[ParameterDescription, ...]


@dataclass(frozen=True, kw_only=True)
class PolicyDescription(PolicyFacts, JsonDocument):
    """Result of evaluate policies show --json."""

    schema: ClassVar[str] = "evaluate.policy_description/1"


@dataclass(frozen=True)
class PolicyList(JsonDocument):
    """Result of evaluate policies list --json."""

    schema: ClassVar[str] = "evaluate.policies/1"

    policies: tuple[PolicyFacts, ...]
