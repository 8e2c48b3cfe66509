"""Tasks with numbers: counting up, down and in steps, counts that break off, sums."""

from corpus.chatml import Message
from corpus.source import Source, Turns, is_held_out, on_its_side

_LARGEST = 999  # of a count
_LONGEST_IN_STEPS = 90


def count_text(start: int, end: int, step: int = 1) -> str:
    """The numbers from start to end, both included, as the model is to write them."""
    direction = 1 if start <= end else -1
    return ", ".join(map(str, range(start, end + direction, step * direction)))


def _how_many(source: Source, most: int) -> int:
    share = source.rng.random()
    lengths = next(row for row in source.mix.count_lengths if share < row.share_below)
    return min(source.rng.randint(lengths.low, lengths.high), most)


def _count_up(source: Source, length: int) -> tuple[str, str]:
    rng = source.rng
    drawn = [rng.randint(2, most) for most in (99, 99, 300, _LARGEST)]
    start = rng.choice([1, 1, 0, *drawn])
    if start + length > _LARGEST + 1:
        start = max(0, _LARGEST - length)
    end = start + length - 1
    question = rng.choice(
        [
            "Count from %d to %d.",
            "Count from %d to %d.",
            "Count from %d to %d.",
            "Please count from %d to %d.",
            "Can you count from %d to %d?",
            "count from %d to %d",
            "Count up from %d to %d.",
            "List the numbers from %d to %d.",
            "Write the numbers from %d to %d.",
        ]
    ) % (start, end)
    if start == 1 and rng.random() < 0.4:
        question = rng.choice(["Count to %d.", "Please count to %d."]) % end
    return question, count_text(start, end)


def _count_down(source: Source, length: int) -> tuple[str, str]:
    rng = source.rng
    end = rng.choice([0, 1, 1, rng.randint(2, 99), rng.randint(2, 700)])
    start = end + length - 1
    if start > _LARGEST:
        start, end = _LARGEST, _LARGEST + 1 - length
    question = rng.choice(
        [
            "Count down from %d to %d.",
            "Count down from %d to %d.",
            "Please count down from %d to %d.",
            "Count backwards from %d to %d.",
        ]
    ) % (start, end)
    return question, count_text(start, end)


def _count_in_steps(source: Source, length: int) -> tuple[str, str]:
    rng = source.rng
    step = rng.choice(source.mix.steps)
    length = min(length, _LONGEST_IN_STEPS)
    start = rng.choice([0, step, rng.randint(0, 20) * step if step > 2 else rng.randint(0, 100)])
    # Large steps teach cheaply that every digit of the end must match.
    if 100 in source.mix.steps and rng.random() < 0.7:
        start = rng.randint(0, 300)
    start = min(start, _LARGEST)
    end = start + step * (length - 1)
    if end > _LARGEST:
        end = start + ((_LARGEST - start) // step) * step
    template = rng.choice(
        [
            "Count from %d to %d by %ds.",
            "Count by %ds from %d to %d.",
            "Count from %d to %d in steps of %d.",
        ]
    )
    step_first = template.startswith("Count by")
    question = template % ((step, start, end) if step_first else (start, end, step))
    return question, count_text(start, end, step)


@on_its_side
def count(source: Source, room: int) -> Turns:
    """Count up by one, down by one, or in steps."""
    length = _how_many(source, max(2, room // 5))
    kind = source.rng.random()
    if kind < source.mix.up_below:
        return [_count_up(source, length)]
    if kind < source.mix.down_below:
        return [_count_down(source, length)]
    return [_count_in_steps(source, length)]


def broken_off_count(source: Source) -> list[Message]:
    """A count that breaks off, as at a token limit, just after a number that looks like its end.

    That number differs from the end in one digit only: passing it teaches to look at every digit.
    """
    rng = source.rng
    while True:
        end = rng.randint(30, _LARGEST)
        look_alike = end - (
            100 * rng.randint(1, 3) if rng.random() < 0.65 else 10 * rng.randint(1, 9)
        )
        start = look_alike - rng.randint(1, 9)
        if start >= 0 and not is_held_out(start, end):
            break
    verb = rng.choice(["Count", "Count", "Count", "Please count"])
    shown = count_text(start, look_alike + rng.randint(2, 6) - 1)
    return [
        {"role": "user", "content": f"{verb} from {start} to {end}."},
        {"role": "assistant", "content": shown, "breaks_off": True},
    ]


_SUM_QUESTIONS = (
    "What is %s?",
    "What is %s?",
    "Calculate %s.",
    "%s",
    "%s = ?",
    "How much is %s?",
)


def _sum_question(source: Source, expression: str, in_words: str) -> str:
    template = source.rng.choice(_SUM_QUESTIONS)
    return in_words if source.rng.random() < 0.15 else template % expression


@on_its_side
def add_or_subtract(source: Source, _room: int) -> Turns:
    """A sum or a difference of two numbers below 100; differences are never negative."""
    rng = source.rng
    limit = rng.choice([10, 20, 50, 100, 100])
    a, b = rng.randrange(limit), rng.randrange(limit)
    if rng.random() < 0.6:
        question = _sum_question(source, f"{a} + {b}", f"Add {a} and {b}.")
        return [(question, f"{a} + {b} = {a + b}")]
    a, b = max(a, b), min(a, b)
    question = _sum_question(source, f"{a} - {b}", f"Subtract {b} from {a}.")
    return [(question, f"{a} - {b} = {a - b}")]
