"""Where each policy lives. Adding one is its file and its line here."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import re
import sys
import typing
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from evaluator.errors import ParameterError, PolicyError, SourceError, UnknownNameError, nearest, nearest_file
from evaluator.options.declaration import alternatives, declaration, kinds_of

if TYPE_CHECKING:
    from evaluator.policies.base import PolicyDescription

POLICIES = {
    "random": "evaluator.policies.static:RandomPolicy",
    "fixed": "evaluator.policies.static:FixedAction",
    "logging": "evaluator.policies.static:LoggingPolicy",
    "columns": "evaluator.policies.columns:ColumnsPolicy",
    "target": "evaluator.policies.columns:TargetPolicy",
    "ucb1": "evaluator.policies.naive_ucb:UCB1",
    "klucb": "evaluator.policies.naive_ucb:KLUCB",
    "thompson": "evaluator.policies.thompson:BetaThompson",
    "delayed-ucb": "evaluator.policies.delayed_ucb:DelayedUCB",
    "delayed-klucb": "evaluator.policies.delayed_ucb:DelayedKLUCB",
    "discarding-ucb": "evaluator.policies.discarding_ucb:DiscardingUCB",
    "discarding-klucb": "evaluator.policies.discarding_ucb:DiscardingKLUCB",
    "delayed-thompson": "evaluator.policies.thompson:DelayedThompson",
    "qpm-d": "evaluator.policies.qpm_d:QPMD",
    "improved-ucb": "evaluator.policies.improved_ucb:ImprovedUCB",
    "odaaf": "evaluator.policies.odaaf:ODAAF",
    "odaaf-b": "evaluator.policies.odaaf:ODAAFB",
    "odaaf-v": "evaluator.policies.odaaf:ODAAFV",
    "patient-bandits": "evaluator.policies.patient_bandits:PatientBandits",
    "adapt-patient-bandits": "evaluator.policies.adapt_patient_bandits:AdaptPatientBandits",
    "linucb": "evaluator.policies.naive_linear:LinUCB",
    "lints": "evaluator.policies.naive_linear:LinTS",
    "waitlinucb": "evaluator.policies.window_linear:WaitLinUCB",
    "nonambiguous-linucb": "evaluator.policies.window_linear:NonambiguousLinUCB",
    "otflinucb": "evaluator.policies.otf_linear:OTFLinUCB",
    "otflints": "evaluator.policies.otf_linear:OTFLinTS",
}
ENTRY_POINTS = "evaluator.policies"
# A comma that no parameter follows.
_BETWEEN_SPECS = re.compile(r",(?!\s*\w+\s*=)")


def names() -> list[str]:
    """Return the names of the package's policies, and of policies in installed packages."""
    return [*POLICIES, *sorted(point.name for point in entry_points(group=ENTRY_POINTS))]


def resolve(spec: str, *, files: bool = True) -> Any:
    """Return the policy a spec names, in any case, with underscores for hyphens where one likes.

    Parameters
    ----------
    spec
        Text that names a policy: ``name``, ``name:parameter=value,...``, or ``path/to/mine.py:Class`` with optional
        ``:parameter=value,...``.
    files
        Whether the spec may name a file of Python, which is then run. Not where somebody else may have written the
        spec.

    Returns
    -------
    Policy or UserPolicy
        Description of the policy; a plain Python class comes wrapped.

    Raises
    ------
    UnknownNameError, ParameterError
        No policy has this name, or it has no such parameter or value; names the nearest.

    Examples
    --------
    >>> resolve("otflinucb:alpha=0.1")
    OTFLinUCB(diagonal=False, alpha=0.1, delta=0.1, ridge=1.0, width='figures', bonus='buffered', ties='random')
    >>> resolve("Delayed_UCB").spec
    'delayed-ucb'
    """
    name, _, rest = spec.partition(":")
    if name.endswith(".py"):
        if not files:
            raise UnknownNameError(
                f"{spec!r} is Python code, which no file names.", remedy="pass it yourself, with -p."
            )
        class_name, _, rest = rest.partition(":")
        cls = _from_file(Path(name), class_name)
    elif (own := _as_named(name, POLICIES)) is not None:
        cls = _import(POLICIES[own])
    else:
        points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
        brought = _as_named(name, points)
        if brought is None:
            raise UnknownNameError(f"Unknown policy {name!r}.", remedy=nearest(_plain(name), names()))
        cls = points[brought].load()
    if first := getattr(cls, "first", ""):
        return as_policy(cls, _with_first(cls, name, rest, first))
    return as_policy(cls, _parameters(cls, name, rest))


def as_known(spec: str) -> str:
    """Return a policy's spec with its name as the registry writes it; unchanged where no policy has the name.

    >>> as_known("UCB1"), as_known("OTFLinUCB:alpha=0.1"), as_known("mine.py:Best")
    ('ucb1', 'otflinucb:alpha=0.1', 'mine.py:Best')
    """
    name, colon, rest = spec.partition(":")
    return f"{_as_named(name, names()) or name}{colon}{rest}"


def split_specs(text: str) -> list[str]:
    """Return the specs of a text that holds one or, with commas between them, several.

    >>> split_specs("otflinucb:alpha=0.1,ridge=2,ucb1")
    ['otflinucb:alpha=0.1,ridge=2', 'ucb1']
    """
    return [spec.strip() for spec in _BETWEEN_SPECS.split(text)]


def as_policy(cls: type, parameters: dict[str, Any]) -> Any:
    """Return the description of a policy class, wrapping a plain Python one."""
    from evaluator.policies.base import Policy

    if issubclass(cls, Policy):
        known = [f.name for f in dataclasses.fields(cls)]
        for key in parameters:
            if key not in known:
                hint = nearest(key, known) if known else "it has none."
                raise ParameterError(f"{cls.name}: unknown parameter {key!r}.", remedy=hint)
        return cls(**parameters)
    from evaluator.policies.user import UserPolicy

    return UserPolicy(cls=cls, parameters=parameters)


def describe(name: str) -> PolicyDescription:
    """Return what `evaluate policies show` prints: summary, paper, needs, parameters with ranges and defaults."""
    from evaluator.policies.base import ParameterDescription, Policy, PolicyDescription

    cls = type(resolve(name))
    if not issubclass(cls, Policy):
        raise UnknownNameError(
            f"{name!r} describes nothing but itself.", remedy="only subclasses of Policy can be shown."
        )
    hints = kinds_of(cls)
    lines = (cls.__doc__ or "").strip().splitlines()
    return PolicyDescription(
        name=cls.name,
        summary=lines[0] if lines else "",
        contextual=cls.contextual,
        needs=cls.needs,
        delays=cls.delays,
        paper=cls.paper,
        note=cls.note,
        parameters=tuple(
            ParameterDescription(
                name=f.name,
                type=_type_text(hints[f.name]),
                default=None if f.default is dataclasses.MISSING else f.default,
                range=declaration(f).range_text,
                help=declaration(f).help,
            )
            for f in dataclasses.fields(cls)
        ),
    )


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _as_named(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is this one, to the letter or else but for case and underscores; None for none."""
    found = list(known)
    return name if name in found else next((one for one in found if _plain(one) == _plain(name)), None)


def _type_text(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    if hint is bool:
        return "false | true"
    return str(getattr(hint, "__name__", hint))


def _parameters(cls: type, name: str, text: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise ParameterError(f"{name}: expected parameter=value, got {part!r}.", remedy=f"write {name}:alpha=0.1")
        if key.strip() in parameters:
            raise ParameterError(f"{name}: parameter {key.strip()!r} is given twice.", remedy="give it once.")
        parameters[key.strip()] = _literal(value.strip(), _kinds(cls, key.strip()))
    return parameters


def _kinds(cls: type, key: str) -> tuple[Any, ...]:
    """Return the types of a parameter that may be text; none of others, and of those of plain Python classes."""
    from evaluator.policies.base import Policy

    kinds = alternatives(kinds_of(cls).get(key)) if issubclass(cls, Policy) else ()
    return kinds if str in kinds else ()


def _with_first(cls: type, name: str, text: str, first: str) -> dict[str, Any]:
    """Return the parameters of a spec whose one word is the value of its first parameter, as it is written."""
    value = text.removeprefix(f"{first}=") if "," not in text else ""
    return {first: value.strip()} if value and "=" not in value else _parameters(cls, name, text)


def _literal(text: str, kinds: tuple[Any, ...] = ()) -> Any:
    """Return the number, bool, None or word a parameter's text stands for; of one that may be text, of these types."""
    if kinds:
        value = _literal(text)
        quoted = len(text) > 2 and text[0] == text[-1] == '"'
        return value if type(value) in kinds and value is not text else text[1:-1] if quoted else text
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _import(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _from_file(path: Path, class_name: str) -> Any:
    if not path.is_file():
        hint = nearest_file(path, "write path/to/mine.py:MyPolicy.")
        raise SourceError(f"No policy file {str(path)!r}.", remedy=hint)
    module = _load_file(path)
    classes = {n: c for n, c in vars(module).items() if isinstance(c, type) and c.__module__ == module.__name__}
    if class_name not in classes:
        raise UnknownNameError(
            f"{path} has no class {class_name!r}.",
            remedy=nearest(class_name, classes) if classes else "define one.",
        )
    return classes[class_name]


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_policy_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses and get_type_hints look the module of a class up here.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PolicyError(f"{path} failed to load: {type(error).__name__}: {error}") from error
    return module
