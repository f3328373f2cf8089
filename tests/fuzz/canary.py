"""What a file must not bring about: that its code runs."""

from __future__ import annotations

from pathlib import Path

# Where it would sing, in the folder that a case runs in.
SONG = "the-canary-sang"
# Pickle opcodes of `open(SONG, "w")`, written out so that no part of this module has to be importable.
PICKLE = b"cbuiltins\nopen\n(S'" + SONG.encode() + b"'\nS'w'\ntR."
PAYLOAD = "payload.py"
_CODE = f"""open({SONG!r}, "w").close()


class Evil:
    contextual = False

    def __init__(self, setting, **parameters):
        pass

    def choose(self, vectors, rng):
        return 0

    def displayed(self, vectors, action):
        pass

    def converted(self, vector, action, delay, value):
        pass
"""


def put_payload(folder: Path) -> None:
    """Leave a module for a file to name."""
    (folder / PAYLOAD).write_text(_CODE)
