"""Every delay law by name: what a word of the command line and a scenario say of it, and the function that makes it.

Adding a law is its function in `evaluator.delays.laws` and its entry here. No NumPy is loaded, so that specs validate
without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

# A star that Markdown takes for no emphasis.
_NEEDED = "\\*"


class LawNumber(NamedTuple):
    """A number of a law's word, such as 500 in ``geometric:500``: the function's parameter, how its text is read."""

    parameter: str
    read: Callable[[str], float] = float


class LawKey(NamedTuple):
    """A key that a scenario gives for a law, a field of `evaluator.worlds.scenarios.scenario.Delay`.

    It gives the law's function the `parameter` of that name, or the one named as the key, `read` from the key's value.
    Where it may be left out, `default` stands for it; None stands for the function's default. The docs print `said`
    behind it.
    """

    name: str
    needed: bool = False
    parameter: str = ""
    default: float | None = None
    read: Callable[[Any], Any] | None = None
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class NamedLaw:
    """A delay law as it is named: by a word with numbers, the last of them perhaps optional, or by keys of a scenario.

    `make` names the function of `evaluator.delays.laws` that makes it; without numbers it has no word. `cdf` is the
    formula of P(D <= a) in the scenario's keys, for the docs.
    """

    make: str
    numbers: tuple[LawNumber, ...] = ()
    optional: int = 0
    keys: tuple[LawKey, ...]
    cdf: str

    @property
    def takes(self) -> tuple[str, ...]:
        """Names of the keys, those it cannot do without first."""
        return tuple(key.name for key in sorted(self.keys, key=lambda key: not key.needed))

    def words(self, name: str) -> list[str]:
        """Return the forms of its word, numbers in capitals."""
        names = [number.parameter.upper() for number in self.numbers]
        fewest = len(names) - self.optional
        return [":".join([name, *names[:n]]) for n in range(fewest, len(names) + 1) if n]

    def arguments(self, given: Callable[[str], Any]) -> dict[str, Any]:
        """Return the function's arguments from the values of a scenario's keys, None where a key is left out."""
        found = {}
        for key in self.keys:
            value = given(key.name)
            value = key.default if value is None else value
            if value is not None:
                found[key.parameter or key.name] = value if key.read is None else key.read(value)
        return found


def _whole_or_not(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


_MEAN = (LawKey("mean", needed=True),)
# In the order in which docs and hints list them; the first is a scenario's default.
LAWS = {
    "geometric": NamedLaw(
        make="geometric",
        numbers=(LawNumber("mean"), LawNumber("start", int)),
        optional=1,
        keys=(
            LawKey("mean", default=100.0, said="(100)"),
            LawKey("support", parameter="start", default=1, said="(1, or 0)"),
        ),
        cdf="support 1: 1 - (1 - 1/mean)^a; support 0: 1 - (mean/(1 + mean))^(a + 1)",
    ),
    "fixed": NamedLaw(
        make="fixed",
        numbers=(LawNumber("delay", int),),
        keys=(LawKey("mean", parameter="delay", default=100, read=int, said="(100)"),),
        cdf="1 from `mean` on",
    ),
    "exponential": NamedLaw(make="exponential", numbers=(LawNumber("mean"),), keys=_MEAN, cdf="1 - exp(-a/mean)"),
    "uniform": NamedLaw(
        make="uniform",
        numbers=(LawNumber("low", _whole_or_not), LawNumber("high", _whole_or_not)),
        keys=(LawKey("low", default=0, said="(0)"), LawKey("high", needed=True)),
        cdf="(a - low + 1)/(high - low + 1)",
    ),
    "poisson": NamedLaw(make="poisson", numbers=(LawNumber("mean"),), keys=_MEAN, cdf="Poisson"),
    "half-normal": NamedLaw(
        make="half_normal",
        numbers=(LawNumber("mean"),),
        keys=_MEAN,
        cdf="erf(a/(mean sqrt(pi))): the absolute value of a centred normal",
    ),
    "pareto": NamedLaw(
        make="pareto",
        numbers=(LawNumber("alpha"),),
        keys=(LawKey("alpha", needed=True), LawKey("factor", said="(1)"), LawKey("shift", said="(0)")),
        cdf="1 - factor (max(a, 1) + shift)^-alpha; by default type I from 1 on",
    ),
    "lognormal-mixture": NamedLaw(
        make="lognormal_mixture",
        keys=(
            LawKey("weights", needed=True),
            LawKey("medians", needed=True, said="(rounds)"),
            LawKey("sigmas", needed=True),
        ),
        cdf="sum of weight Phi(log(a/median)/sigma)",
    ),
    "packet-loss": NamedLaw(
        make="packet_loss",
        keys=(LawKey("lost", needed=True), LawKey("retry")),
        cdf="1 - lost, and 1 from `retry` on; without `retry` the lost share never converts",
    ),
    # Its file is read by `evaluator.worlds.scenarios.problem`, which knows where the scenario lies.
    "empirical": NamedLaw(
        make="empirical",
        keys=(
            LawKey("file", needed=True),
            LawKey("delay"),
            LawKey("cdf"),
            LawKey("density", said="(instead of `cdf`)"),
            LawKey("scale", said="(1)"),
        ),
        cdf="from a CSV or Parquet file beside the spec",
    ),
}


def grammar() -> str:
    """Return every form of a law's word.

    >>> grammar()[:50]
    'geometric:MEAN, geometric:MEAN:START, fixed:DELAY,'
    """
    forms = [form for name, law in LAWS.items() for form in law.words(name)]
    return f"{', '.join(forms[:-1])} or {forms[-1]}"


def table() -> list[str]:
    """Return the laws of scenarios as a Markdown table: keys, a star behind those that are needed, and P(D <= a)."""
    rows = ["| `family` | keys | P(D <= a) |", "|---|---|---|"]
    for i, (name, law) in enumerate(LAWS.items()):
        keys = (f"`{key.name}`{_NEEDED if key.needed else ''}{f' {key.said}' if key.said else ''}" for key in law.keys)
        rows.append(f"| `{name}`{' (default)' if i == 0 else ''} | {', '.join(keys)} | {law.cdf} |")
    return rows
