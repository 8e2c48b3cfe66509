"""Questions that training never asked: the cases of check.py and of the checks while training.

Counting and sums use only held-out number pairs (counting in steps excepted); everything else
comes from a seed of its own but shares word lists and templates with training.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from corpus import Source, is_held_out
from corpus.chatml import END_OF_TURN, Message, ToolDefinitions, messages_of, render, text_of
from corpus.conversation import TASKS
from corpus.copying import any_word, sentence
from corpus.facts import FACTS, KnownFact
from corpus.numbers import count_text
from corpus.source import Turns
from corpus.tools import tool_conversation

DEFAULT_SEED = 20260101

FREE_JSON = "?json"  # any JSON object will do
SAMPLE = "?sample"  # to be read by a person

_ECHO_REQUESTS = ("Say exactly: %s", "Repeat after me: %s", "Echo: %s")
_FILLERS = ("sum", "echo", "chat", "calendar", "spell", "reverse")
_SAMPLE_QUESTIONS = (
    "Tell me a story about a fox and a lantern.",
    "Tell me a long story about a baker named Clara.",
    "Who are you?",
    "Hello!",
    "Write the Greek alphabet.",
    "Tell me a short story.",
)


@dataclass(frozen=True)
class Case:
    """A conversation that ends with a question, and the answer that is right."""

    category: str
    messages: list[Message]
    answer: str
    tools: ToolDefinitions = None

    def prompt(self) -> str:
        """The text up to the place where the model answers."""
        return text_of(render(self.messages, self.tools, add_generation_prompt=True))


def _case(category: str, turns: Turns, answer: str | None = None) -> Case:
    """The question of the last turn; the answer is the last turn's unless given."""
    return Case(category, messages_of(turns)[:-1], turns[-1][1] if answer is None else answer)


def _count_case(category: str, start: int, end: int, request: str = "Count from %d to %d.") -> Case:
    return _case(category, [(request % (start, end), count_text(start, end))])


def _counts_up(rng: random.Random) -> Iterator[Case]:
    for low, high, count in [(20, 50, 40), (50, 100, 40), (100, 200, 40), (200, 300, 20)]:
        while count > 0:
            start = rng.choice([1, rng.randint(0, 99), rng.randint(0, 650)])
            end = start + rng.randint(low, high) - 1
            if is_held_out(start, end):
                yield _count_case(f"count {low}-{high}", start, end)
                count -= 1


def _counts_down(rng: random.Random) -> Iterator[Case]:
    count = 40
    while count > 0:
        end = rng.randint(0, 300)
        start = end + rng.randint(20, 100)
        if is_held_out(start, end):
            yield _count_case("count down 20-100", start, end, "Count down from %d to %d.")
            count -= 1


def _counts_in_steps(rng: random.Random) -> Iterator[Case]:
    for _ in range(40):
        step = rng.choice([2, 5])
        start = rng.randint(0, 20) * step
        end = start + step * rng.randint(10, 50)
        question = f"Count from {start} to {end} by {step}s."
        yield _case("count by 2s/5s", [(question, count_text(start, end, step))])


def _recall(source: Source) -> Iterator[Case]:
    rng = source.rng
    for turn_count in (3, 8):
        for _ in range(100):
            known = KnownFact.draw(rng, rng.choice(FACTS))
            turns = [known.told(rng)]
            while len(turns) < turn_count + 1:
                turns += TASKS[rng.choice(_FILLERS)](source, 100)
            turns.append(known.asked(rng))
            yield _case(f"recall after {turn_count} turns", turns)
    for _ in range(40):
        known = KnownFact.draw(rng, rng.choice(FACTS))
        start = rng.randint(1, 200)
        end = start + rng.randint(60, 200)
        count = (f"Count from {start} to {end}.", count_text(start, end))
        yield _case("recall over a long count", [known.told(rng), count, known.asked(rng)])


def _single_tasks(source: Source) -> Iterator[Case]:
    for category, task, count in [
        ("math 0-99", "sum", 100),
        ("spell", "spell", 60),
        ("reverse", "reverse", 60),
        ("repeat N times", "repeat", 60),
        ("alphabet", "alphabet", 40),
        ("days/months", "calendar", 40),
        ("utf-8", "unicode", 60),
    ]:
        for _ in range(count):
            yield _case(category, TASKS[task](source, 400))


def _echoes(rng: random.Random) -> Iterator[Case]:
    for category, make_part, low, high, count in [
        ("echo 1-10 words", any_word, 1, 10, 100),
        ("echo 11-30 words", any_word, 11, 30, 100),
        ("echo sentence", sentence, 1, 2, 60),
    ]:
        for _ in range(count):
            text = " ".join(make_part(rng) for _ in range(rng.randint(low, high)))
            yield _case(category, [(rng.choice(_ECHO_REQUESTS) % text, text)])


def _tool_cases(source: Source) -> Iterator[Case]:
    for index in range(100):
        messages, tools = tool_conversation(source)
        calls = [place for place, message in enumerate(messages) if message.get("tool_calls")]
        place = source.rng.choice(calls)
        until_call = text_of(render(messages[:place], tools, add_generation_prompt=True))
        with_call = text_of(render(messages[: place + 1], tools))
        call = with_call[len(until_call) :].replace(f"{END_OF_TURN}\n", "")
        yield Case("tool call", messages[:place], call, tools)
        if index < 60:
            answer = messages[place + 2]["content"]
            yield Case("tool result", messages[: place + 2], answer, tools)


def _is_given(answer: str, question: str) -> bool:
    """Whether a JSON answer can be found out from the question alone (never with true or false)."""
    content = json.loads(answer)
    if not isinstance(content, dict):
        return True
    return all(str(value) in question for value in content.values())


def _json_cases(source: Source) -> Iterator[Case]:
    count = 60
    while count > 0:
        turns = TASKS["json"](source, 300)
        question, answer = turns[0]
        if _is_given(answer, question):
            yield _case("json given values", turns)
            count -= 1


def _open_questions(rng: random.Random) -> Iterator[Case]:
    for _ in range(20):
        question = rng.choice(
            [
                "Give me a JSON object with name and age.",
                "Write a JSON object with the keys name, city and job.",
            ]
        )
        yield _case(FREE_JSON, [(question, "")])
    for question in _SAMPLE_QUESTIONS:
        yield _case(SAMPLE, [(question, "")])


def cases(rng: random.Random) -> Iterator[Case]:
    """All cases, category after category. The same random state gives the same cases."""
    source = Source(rng, held_out=True)
    yield from _counts_up(rng)
    yield from _counts_down(rng)
    yield from _counts_in_steps(rng)
    yield from _recall(source)
    yield from _single_tasks(source)
    yield from _echoes(rng)
    yield from _tool_cases(source)
    yield from _json_cases(source)
    yield from _open_questions(rng)
