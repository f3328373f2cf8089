"""How results show themselves in a notebook.

The report knows every result, so no result may know the report: the package itself, which knows both, brings them
together when a notebook asks for it. A script that only computes never loads what draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class ShownInNotebooks:
    """What a notebook shows as its report: the numbers that the terminal prints, and a picture where there is one."""

    __slots__ = ()
    # Set by `evaluator`, which is imported before any of its rooms.
    _as_html: ClassVar[Callable[[Any], str]]

    def _repr_html_(self) -> str:
        return type(self)._as_html(self)
