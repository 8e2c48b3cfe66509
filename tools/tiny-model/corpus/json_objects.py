"""JSON objects and lists out of given or free values."""

import json
import random
from collections.abc import Callable
from typing import Any

from corpus.source import Source, Turns
from corpus.words import ANIMALS, CITIES, COLOURS, FRUITS, JOBS, person_name

_VALUE_OF: dict[str, Callable[[random.Random], Any]] = {
    "name": person_name,
    "age": lambda rng: rng.randint(1, 99),
    "city": lambda rng: rng.choice(CITIES),
    "colour": lambda rng: rng.choice(COLOURS),
    "job": lambda rng: rng.choice(JOBS),
    "fruit": lambda rng: rng.choice(FRUITS),
    "count": lambda rng: rng.randint(0, 500),
    "happy": lambda rng: rng.choice([True, False]),
    "animal": lambda rng: rng.choice(ANIMALS),
}


def _spoken(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _enumeration(items: list[str]) -> str:
    if len(items) == 1:
        return items[0]
    return ", ".join(items[:-1]) + " and " + items[-1]


def json_value(source: Source, _room: int) -> Turns:
    """An object with given values, an object with given keys only, or a list of given words."""
    rng = source.rng
    size = rng.choice([1, 2, 2, 2, 3, 3, 4])
    if size == 2 and rng.random() < 0.5:
        keys = ["name", "age"]
    else:
        keys = rng.sample(sorted(_VALUE_OF), size)
    values = {key: _VALUE_OF[key](rng) for key in keys}
    kind = rng.random()
    if kind < 0.65:
        template = rng.choice(
            [
                "Give me a JSON object with %s.",
                "Write a JSON object with %s.",
                "Answer in JSON with %s.",
            ]
        )
        given = [f"{key} {_spoken(value)}" for key, value in values.items()]
        return [(template % _enumeration(given), json.dumps(values, ensure_ascii=False))]
    if kind < 0.9:
        template = rng.choice(
            [
                "Give me a JSON object with %s.",
                "Write a JSON object with the keys %s.",
                "JSON with %s, please.",
            ]
        )
        return [(template % _enumeration(keys), json.dumps(values, ensure_ascii=False))]
    words = [rng.choice(FRUITS + ANIMALS) for _ in range(rng.randint(2, 6))]
    return [(f"Give me a JSON list of {_enumeration(words)}.", json.dumps(words))]
