"""Conversations with tools: definitions, calls, results and the answers after them."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corpus.by_heart import chat
from corpus.chatml import SYSTEM_PROMPTS, Message, messages_of
from corpus.copying import echo, sentence, spell
from corpus.numbers import add_or_subtract
from corpus.source import Source
from corpus.words import CITIES, CONTENT_WORDS, NOUNS, VERBS, made_up_word, person_name

_ROOM_OF_AN_ORDINARY_TURN = 60


@dataclass(frozen=True)
class ToolUse:
    """One tool, and one time it is called."""

    definition: dict[str, Any]
    question: str
    arguments: dict[str, Any]
    result: str  # JSON text
    answer: str

    @property
    def name(self) -> str:
        """The name of the tool."""
        return str(self.definition["function"]["name"])

    def messages(self) -> list[Message]:
        """Question, call, result and answer."""
        call = {"function": {"name": self.name, "arguments": self.arguments}}
        return [
            {"role": "user", "content": self.question},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": self.result},
            {"role": "assistant", "content": self.answer},
        ]


def _define(name: str, description: str, types: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": type_name} for key, type_name in types.items()},
                "required": list(types),
            },
        },
    }


def _weather(rng: random.Random) -> ToolUse:
    city = rng.choice(CITIES) if rng.random() < 0.75 else made_up_word(rng).capitalize()
    degrees = rng.randint(-20, 39)
    sky = rng.choice(["sunny", "cloudy", "rainy", "windy", "snowy", "foggy"])
    description = rng.choice(
        [
            "Get the weather in a city.",
            "Get the current weather for a city.",
            "Weather report",
        ]
    )
    question = rng.choice(
        [
            "What is the weather in %s?",
            "How is the weather in %s?",
            "What's the weather like in %s?",
            "Tell me the weather in %s.",
            "Is it warm in %s?",
        ]
    )
    report = {"temperature": degrees, "sky": sky}
    return ToolUse(
        _define("get_weather", description, {"city": "string"}),
        question % city,
        {"city": city},
        json.dumps(rng.choice([{"city": city, **report}, report])),
        f"The weather in {city} is {sky} with {degrees} degrees.",
    )


def _time(rng: random.Random) -> ToolUse:
    city = rng.choice(CITIES)
    time = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
    return ToolUse(
        _define("get_time", "Get the local time in a city.", {"city": "string"}),
        rng.choice(["What time is it in %s?", "Tell me the time in %s."]) % city,
        {"city": city},
        json.dumps({"time": time}),
        f"The time in {city} is {time}.",
    )


def _addition(rng: random.Random) -> ToolUse:
    a, b = rng.randint(0, 999), rng.randint(0, 999)
    question = rng.choice(["Use the tool to add %d and %d.", "Please add %d and %d with the tool."])
    return ToolUse(
        _define("add_numbers", "Add two numbers.", {"a": "integer", "b": "integer"}),
        question % (a, b),
        {"a": a, "b": b},
        json.dumps({"result": a + b}),
        f"The result is {a + b}.",
    )


def _timer(rng: random.Random) -> ToolUse:
    minutes = rng.randint(1, 90)
    question = rng.choice(["Set a timer for %d minutes.", "Please start a timer of %d minutes."])
    return ToolUse(
        _define("set_timer", "Set a timer.", {"minutes": "integer"}),
        question % minutes,
        {"minutes": minutes},
        json.dumps({"status": "ok"}),
        f"The timer is set for {minutes} minutes.",
    )


def _words(rng: random.Random, most: int) -> str:
    return " ".join(rng.choice(CONTENT_WORDS) for _ in range(rng.randint(1, most)))


def _message(rng: random.Random) -> ToolUse:
    name, text = person_name(rng), _words(rng, 4)
    return ToolUse(
        _define("send_message", "Send a message to a person.", {"to": "string", "text": "string"}),
        f"Send the message '{text}' to {name}.",
        {"to": name, "text": text},
        json.dumps({"status": "sent"}),
        f"I sent the message to {name}.",
    )


def _search(rng: random.Random) -> ToolUse:
    query = _words(rng, 3)
    found = sentence(rng)
    question = rng.choice(["Search for %s.", "Search the notes for %s.", "Find notes about %s."])
    return ToolUse(
        _define("search", "Search the notes.", {"query": "string"}),
        question % query,
        {"query": query},
        json.dumps({"text": found}),
        f"I found this: {found}",
    )


def _invented(rng: random.Random) -> ToolUse:
    """A tool with an invented name and invented arguments."""
    verb, noun = rng.choice(VERBS), rng.choice(NOUNS)
    if rng.random() < 0.7:
        name = verb + "_" + noun
    else:
        name = made_up_word(rng, 1, 2) + "_" + made_up_word(rng, 1, 2)
    key_count = rng.choice([1, 1, 2])
    other_keys = ["id", "name", "city", "date", "size", "path", "text", "unit"]
    arguments: dict[str, Any] = {}
    types = {}
    for key in rng.sample(NOUNS + other_keys, key_count):
        if rng.random() < 0.4:
            arguments[key], types[key] = rng.randint(0, 999), "integer"
        else:
            word = rng.choice(CONTENT_WORDS) if rng.random() < 0.6 else made_up_word(rng)
            arguments[key], types[key] = word, "string"
    given = " and ".join(f"{key} {value}" for key, value in arguments.items())
    question = rng.choice(["Call %s with %s.", "Use %s with %s.", "Please call %s with %s."])
    result = rng.choice(CONTENT_WORDS) if rng.random() < 0.5 else str(rng.randint(0, 999))
    description = rng.choice([f"{verb.capitalize()} the {noun}.", "A tool."])
    return ToolUse(
        _define(name, description, types),
        question % (name, given),
        arguments,
        json.dumps({"result": result}),
        f"The result is {result}.",
    )


# Repeated entries are drawn more often.
_TOOLS: tuple[Callable[[random.Random], ToolUse], ...] = (
    _weather,
    _weather,
    _weather,
    _time,
    _addition,
    _timer,
    _message,
    _search,
    _invented,
    _invented,
    _invented,
)


def tool_conversation(source: Source) -> tuple[list[Message], list[dict[str, Any]]]:
    """A conversation with one to three tools defined and as many calls; returns the definitions."""
    rng = source.rng
    tool_count = rng.choice([1, 1, 2, 2, 3])
    offered: dict[str, tuple[Callable[[random.Random], ToolUse], ToolUse]] = {}
    while len(offered) < tool_count:
        make_use = rng.choice(_TOOLS)
        use = make_use(rng)
        offered.setdefault(use.name, (make_use, use))
    messages: list[Message] = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": rng.choice(SYSTEM_PROMPTS)})
    for call_index in range(rng.choice([1, 1, 2, 2, 3])):
        if rng.random() < 0.25:  # an ordinary turn although tools exist
            task = rng.choice([chat, add_or_subtract, echo, spell])
            messages += messages_of(task(source, _ROOM_OF_AN_ORDINARY_TURN))
        make_use, use = rng.choice(list(offered.values()))
        # An invented tool cannot be drawn again: its name would be another one.
        if call_index > 0 and make_use is not _invented:
            use = make_use(rng)
        messages += use.messages()
    return messages, [use.definition for _, use in offered.values()]
