"""Whole conversations: tasks, facts told and asked for later, tools."""

import random

from corpus import by_heart, copying, json_objects, numbers, stories
from corpus.chatml import SYSTEM_PROMPTS, Message, ToolDefinitions, messages_of
from corpus.facts import FACTS, Fact, KnownFact
from corpus.source import TASK_NAMES, Source, Task, Turns
from corpus.tools import tool_conversation

TASKS: dict[str, Task] = {
    "count": numbers.count,
    "echo": copying.echo,
    "repeat": copying.repeat,
    "story": stories.story,
    "sum": numbers.add_or_subtract,
    "spell": copying.spell,
    "reverse": copying.reverse,
    "alphabet": by_heart.alphabet,
    "calendar": by_heart.calendar,
    "chat": by_heart.chat,
    "unicode": by_heart.other_scripts,
    "json": json_objects.json_value,
}
_TASKS_IN_ORDER = [TASKS[name] for name in TASK_NAMES]

_SYSTEM_PROMPT_TOKENS = 15
_QUOTED_MESSAGE_CHARACTERS_MAX = 200


def _estimated_tokens(text: str) -> int:
    return len(text) // 3 + 6


def _draw_target(rng: random.Random) -> int:
    share = rng.random()
    if share < 0.45:
        return rng.randint(20, 200)
    if share < 0.84:
        return rng.randint(150, 500)
    if share < 0.985:
        return rng.randint(400, 1200)
    return rng.randint(1200, 2400)


class _Dialogue:
    """A conversation without tools while it is being made, of about `target` tokens."""

    def __init__(self, source: Source, target: int) -> None:
        self.messages: list[Message] = []
        self._source, self._rng, self._target = source, source.rng, target
        self._used = 0
        self._facts: dict[str, KnownFact] = {}
        if self._rng.random() < 0.3:
            prompt = self._rng.choice(SYSTEM_PROMPTS)
            self.messages.append({"role": "system", "content": prompt})
            self._used += _SYSTEM_PROMPT_TOKENS
        self._untold: list[Fact] = list(FACTS)
        self._rng.shuffle(self._untold)
        self._first_message: str | None = None

    def make(self) -> None:
        """Add turns until the target is reached, then perhaps one more question for a fact."""
        while True:
            for question, answer in self._next_turns():
                self._first_message = self._first_message or question
                self._used += _estimated_tokens(question) + _estimated_tokens(answer)
                self.messages += messages_of([(question, answer)])
            if self._used >= self._target:
                break
        if self._facts and self._rng.random() < 0.5:
            self.messages += messages_of([self._ask_for_fact()])

    def _next_turns(self) -> Turns:
        share = self._rng.random()
        if self._untold and share < (0.12 if self._facts else 0.35):
            return [self._tell_facts()]
        if self._facts and share < 0.42:
            return [self._ask_for_fact()]
        first = self._first_message
        if first and share < 0.45 and len(first) < _QUOTED_MESSAGE_CHARACTERS_MAX:
            question = self._rng.choice(
                [
                    "What was my first message?",
                    "Repeat my first message.",
                    "How did this conversation begin?",
                ]
            )
            return [(question, f'Your first message was: "{first}"')]
        task = self._rng.choices(_TASKS_IN_ORDER, self._source.mix.weights)[0]
        room = self._target - self._used if self._used else 2 * self._target
        return task(self._source, max(60, min(1500, room)))

    def _tell_facts(self) -> tuple[str, str]:
        first = self._learn_fact()
        turn = first.told(self._rng)
        if self._untold and self._rng.random() < 0.15:
            second = self._learn_fact()
            statements = first.statement(self._rng) + " " + second.statement(self._rng)
            turn = (statements, "I will remember that.")
        return turn

    def _learn_fact(self) -> KnownFact:
        known = KnownFact.draw(self._rng, self._untold.pop())
        self._facts[known.fact.kind] = known
        return known

    def _ask_for_fact(self) -> tuple[str, str]:
        return self._facts[self._rng.choice(sorted(self._facts))].asked(self._rng)


def conversation(
    source: Source, target: int | None = None
) -> tuple[list[Message], ToolDefinitions]:
    """A conversation of about `target` tokens, and the tools it has.

    Without a target one between 20 and 2,400 is drawn. Conversations with tools and counts that
    break off have lengths of their own.
    """
    rng, mix = source.rng, source.mix
    if mix.cut_share and rng.random() < mix.cut_share / 2:
        return numbers.broken_off_count(source), None
    if rng.random() < mix.tool_share:
        return tool_conversation(source)
    dialogue = _Dialogue(source, _draw_target(rng) if target is None else target)
    dialogue.make()
    if mix.cut_share and rng.random() < mix.cut_share / 2:
        dialogue.messages += numbers.broken_off_count(source)
    return dialogue.messages, None
