"""What every task draws from: the random source, the mix of a training phase, the held-out line."""

import functools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

Turns = list[tuple[str, str]]  # (what the user says, what the assistant answers)

# The order of the weights of a mix.
TASK_NAMES = (
    "count",
    "echo",
    "repeat",
    "story",
    "sum",
    "spell",
    "reverse",
    "alphabet",
    "calendar",
    "chat",
    "unicode",
    "json",
)


@dataclass(frozen=True)
class LengthRange:
    """Counts of `low` to `high` numbers, drawn when a random share is below `share_below`."""

    share_below: float
    low: int
    high: int


def _lengths(*rows: tuple[float, int, int]) -> tuple[LengthRange, ...]:
    return tuple(LengthRange(*row) for row in rows)


@dataclass(frozen=True)
class Mix:
    """How often each kind of text appears in a training phase. Shares are between 0 and 1."""

    weights: tuple[int, ...]  # one for each of TASK_NAMES
    count_lengths: tuple[LengthRange, ...]
    tool_share: float  # of conversations: with tools
    up_below: float = 0.70  # counts: upwards below this share,
    down_below: float = 0.85  # downwards below this one, in steps above it
    steps: tuple[int, ...] = (2, 2, 5, 5, 10)
    cut_share: float = 0.0  # counts that break off near a number like their end

    def __post_init__(self) -> None:
        assert len(self.weights) == len(TASK_NAMES)
        assert self.count_lengths[-1].share_below > 1


def _mixes() -> dict[int, Mix]:
    wide = _lengths((0.30, 2, 12), (0.62, 10, 45), (0.84, 40, 130), (1.01, 120, 300))
    first = Mix((11, 30, 8, 8, 18, 12, 8, 3, 5, 9, 5, 9), wide, tool_share=0.06)
    second = Mix((6, 30, 5, 6, 22, 22, 12, 3, 5, 8, 5, 12), wide, tool_share=0.09)
    third = Mix(
        (11, 30, 7, 6, 22, 16, 10, 3, 4, 7, 5, 12),
        _lengths((0.25, 2, 12), (0.50, 10, 45), (0.82, 40, 130), (1.01, 120, 300)),
        tool_share=0.09,
    )
    fourth = Mix(
        (17, 34, 8, 4, 12, 8, 4, 2, 3, 6, 5, 9),
        _lengths((0.28, 2, 15), (0.74, 15, 50), (0.90, 50, 130), (1.01, 120, 300)),
        tool_share=0.09,
    )
    fifth = replace(
        fourth,
        weights=(17, 32, 8, 4, 12, 8, 4, 2, 3, 6, 5, 9),
        count_lengths=_lengths((0.25, 2, 15), (0.55, 15, 50), (0.78, 50, 130), (1.01, 120, 300)),
        up_below=0.55,
        down_below=0.70,
        steps=(2, 5, 10, 10, 20, 50, 100, 100),
    )
    sixth = replace(
        fifth,
        weights=(36, 28, 8, 3, 8, 5, 3, 2, 3, 5, 4, 7),
        up_below=0.45,
        down_below=0.57,
        steps=(2, 5, 5, 10, 10, 20, 50, 100, 100, 100, 100, 100),
    )
    seventh = replace(
        sixth,
        weights=(26, 28, 8, 3, 8, 5, 3, 2, 3, 5, 4, 7),
        up_below=0.62,
        down_below=0.77,
        steps=(2, 5, 5, 10, 10, 20, 50, 100),
        cut_share=0.6,
    )
    phases = (first, second, third, fourth, fifth, sixth, seventh)
    return dict(enumerate(phases, start=1))


MIXES = _mixes()  # by the number of the training phase


@dataclass
class Source:
    """One stream of text: all draws of a task come from here, in a fixed order."""

    rng: random.Random
    mix: Mix = field(default_factory=lambda: MIXES[1])
    held_out: bool = False  # draw only number pairs that training never sees


Task = Callable[[Source, int], Turns]  # source, and about how many tokens the answer may have

_NUMBER = re.compile(r"[0-9]+")
_ATTEMPTS_MAX = 400


def is_held_out(first: int, second: int) -> bool:
    """Whether this pair of numbers is kept out of training (one pair in 17)."""
    return (31 * first + second) % 17 == 3


def on_its_side(task: Task) -> Task:
    """Let a task draw again until its question's numbers are on the source's side of the line.

    The pair is the first two numbers of the question; a question with one number counts from 1.
    """

    @functools.wraps(task)
    def on_side(source: Source, room: int) -> Turns:
        for _ in range(_ATTEMPTS_MAX):
            turns = task(source, room)
            numbers = [int(digits) for digits in _NUMBER.findall(turns[0][0])]
            if len(numbers) == 1:
                numbers.insert(0, 1)
            if is_held_out(numbers[0], numbers[1]) == source.held_out:
                return turns
        raise RuntimeError(f"{task.__name__}: no number pair found in {_ATTEMPTS_MAX} attempts")

    return on_side
