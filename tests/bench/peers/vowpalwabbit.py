"""VowpalWabbit's own evaluator by rejection, `--explore_eval`, run by its command-line driver on a file.

Its driver on one thread took the least processor time of the ways tried: the driver on two threads, all that the
package `vowpalwabbit` offers, took more, and so did learning in Python from examples parsed before. The greedy policy
is among its cheapest and learns this log. RegCB would be nearer to LinUCB, but under `--explore_eval` it accepts every
display.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.bench.peers.peer import Displays, Outcome, Peer, Replay, Way

ARGUMENTS = ("--explore_eval", "--cb_explore_adf", "--epsilon", "0", "--noconstant", "--data", "displays.txt")


def _replay(displays: Displays, *more: str) -> Replay:
    from vowpal_wabbit_next import run_cli_driver

    folder = tempfile.TemporaryDirectory()
    _write(displays, Path(folder.name) / "displays.txt")

    def replay() -> Outcome:
        printed, _ = run_cli_driver([*ARGUMENTS, *more], onethread=True, cwd=Path(folder.name))
        # The average loss is an importance-weighted estimate of the same mean cost.
        return Outcome(int(_number("weighted update count", printed)), -_number("average loss", printed))

    return replay


def _from_cache(displays: Displays) -> Replay:
    replay = _replay(displays, "--cache_file", "displays.cache")
    replay()  # the first run parses the text and leaves the cache
    return replay


def _write(displays: Displays, path: Path) -> None:
    k, d = displays.vectors.shape[1:]
    line = "|a " + " ".join(f"{i}:%.6g" for i in range(d)) + "\n"
    with path.open("w") as file:
        for vectors, action, reward in zip(*displays, strict=True):
            lines = [line] * k
            lines[action] = f"0:{-reward:g}:{1 / k:g} {line}"
            file.write("".join(lines) % tuple(vectors.ravel().tolist()) + "\n")


def _number(name: str, printed: str) -> float:
    found = re.search(rf"^{name} = (\S+)$", printed, re.MULTILINE)
    if found is None:
        raise ValueError(f"VowpalWabbit printed no {name!r}: {printed[-500:]!r}")
    return float(found[1])


PEER = Peer(
    "vowpal-wabbit-next",
    (Way("explore_eval, reading its cache", _from_cache), Way("explore_eval, parsing text", _replay)),
)
