"""Options that a command shares with others, declared once as the parameters of a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

Command = Callable[..., None]


def lends(lender: Command, *, to: str, given_only: bool) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options of another function.

    Parameters
    ----------
    lender
        Its parameters are the options.
    to
        The command's argument that takes them, as a dict; it disappears from the command's own options.
    given_only
        Leave out those that the user did not give, so that what they do not apply to need not know them.
    """
    lent = inspect.signature(lender, eval_str=True).parameters
    unused = {name: parameter.default for name, parameter in lent.items()}

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters

        @functools.wraps(command)
        def with_lent(**arguments: Any) -> None:
            taken = {name: arguments.pop(name) for name in lent}
            if given_only:
                taken = {name: value for name, value in taken.items() if value != unused[name]}
            command(**{to: taken}, **arguments)

        parameters = [*(p for name, p in own.items() if name != to), *lent.values()]
        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        with_lent.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        with_lent.__annotations__ = {p.name: p.annotation for p in keyword}
        return with_lent

    return decorate
