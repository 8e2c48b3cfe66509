"""Tasks that copy: echo, repeat, spell, reverse."""

import random
from collections.abc import Callable

from corpus.source import Source, Turns
from corpus.words import (
    ADJECTIVES,
    ALPHABET,
    ANIMALS,
    CITIES,
    COLOURS,
    CONTENT_WORDS,
    EMOJI,
    FOODS,
    FOREIGN_WORDS,
    FRUITS,
    FUNCTION_WORDS,
    NAMES,
    NOUNS,
    OBJECTS,
    PLACES,
    VERBS,
    made_up_word,
    person_name,
)

_ECHO_REQUESTS = (
    "Say exactly: %s",
    "Repeat after me: %s",
    "Echo: %s",
    "Echo this: %s",
    "Say: %s",
    "Repeat: %s",
    "Repeat exactly: %s",
    "Please repeat: %s",
    "Copy this: %s",
    "Say exactly: %s",
    'Say "%s"',
    "Say '%s'",
    'Repeat "%s"',
    "Repeat this back to me: %s",
    "Write exactly this: %s",
    "Echo this phrase: %s",
)


def any_word(rng: random.Random) -> str:
    """One word of any sort (listed, made up, number, foreign, code), to make copying general."""
    share = rng.random()
    if share < 0.50:
        return rng.choice(CONTENT_WORDS)
    if share < 0.60:
        return rng.choice(FUNCTION_WORDS)
    if share < 0.72:
        return made_up_word(rng, 1, 3)
    if share < 0.80:
        return str(rng.randint(0, rng.choice([9, 99, 999, 99999])))
    if share < 0.86:
        return rng.choice(NAMES)
    if share < 0.90:
        return rng.choice(FOREIGN_WORDS) if rng.random() < 0.7 else rng.choice(EMOJI)
    if share < 0.94:
        return rng.choice(CONTENT_WORDS).capitalize()
    if share < 0.97:
        if rng.random() < 0.3:
            return rng.choice(CONTENT_WORDS).upper()
        return rng.choice(ALPHABET).upper() + str(rng.randint(0, 99))
    return "".join(rng.choice(ALPHABET + "0123456789") for _ in range(rng.randint(2, 6)))


def sentence(rng: random.Random) -> str:
    """A sentence of one of eight forms."""
    pick = rng.choice
    form = rng.randrange(8)
    if form == 0:
        return f"The {pick(ADJECTIVES)} {pick(OBJECTS)} is on the {pick(NOUNS)}."
    if form == 1:
        names = f"{person_name(rng)} and {person_name(rng)}"
        return f"{names} {pick(VERBS)} by the {pick(PLACES)}."
    if form == 2:
        seen = f"{rng.randint(2, 99)} {pick(COLOURS)} {pick(ANIMALS)}s"
        return f"I saw {seen} near the {pick(PLACES)}."
    if form == 3:
        return f"{person_name(rng)} likes {pick(FOODS)} and {pick(FRUITS)}."
    if form == 4:
        return f"Never {pick(VERBS)} the {pick(ADJECTIVES)} {pick(NOUNS)}!"
    if form == 5:
        return f"In {pick(CITIES)}, the {pick(NOUNS)} is {pick(ADJECTIVES)}."
    if form == 6:
        verb, hour, minute = pick(VERBS), rng.randint(0, 23), rng.randint(0, 59)
        return f"We {verb} at {hour}:{minute:02d} in {pick(CITIES)}."
    subject = f"{pick(ADJECTIVES).capitalize()} {pick(ANIMALS)}"
    return f"{subject}, {pick(ADJECTIVES)} {pick(NOUNS)}."


def _phrase(rng: random.Random, room: int) -> str:
    share = rng.random()
    if share < 0.30:
        return sentence(rng)
    if share < 0.40:
        return sentence(rng) + " " + sentence(rng)
    if share < 0.75:
        length = rng.randint(1, 8)
    elif share < 0.93:
        length = rng.randint(6, 20)
    else:
        length = rng.randint(15, 40)
    words = [any_word(rng) for _ in range(min(length, max(1, room // 6)))]
    phrase = " ".join(words) if rng.random() < 0.75 else ", ".join(words)
    if rng.random() < 0.25:
        phrase += rng.choice(".!?")
    return phrase


def echo(source: Source, room: int) -> Turns:
    """Say a text again: at once, in quotes, or when asked in the next turn."""
    rng = source.rng
    phrase = _phrase(rng, room // 2)
    kind = rng.random()
    if kind < 0.65:
        return [(rng.choice(_ECHO_REQUESTS) % phrase, phrase)]
    if kind < 0.80:
        request = rng.choice(["Quote this: %s", "Quote me: %s", "Put this in quotes: %s"])
        return [(request % phrase, f'"{phrase}"')]
    remark = sentence(rng) if rng.random() < 0.7 else phrase
    reply = rng.choice(["I see.", "Thank you for telling me.", "Noted."])
    question = rng.choice(
        ["What did I just say?", "What was my last message?", "Repeat my last message."]
    )
    return [(remark, reply), (question, f'You said: "{remark}"')]


def repeat(source: Source, room: int) -> Turns:
    """Write a phrase a number of times, mostly with line numbers."""
    rng = source.rng
    make_phrase: Callable[[], str] = rng.choice(
        [
            lambda: rng.choice(ADJECTIVES) + " " + rng.choice(NOUNS),
            lambda: rng.choice(CONTENT_WORDS),
            lambda: sentence(rng),
            lambda: " ".join(any_word(rng) for _ in range(rng.randint(1, 5))),
        ]
    )
    phrase = make_phrase()
    times = rng.choice([rng.randint(2, 6), rng.randint(3, 12), rng.randint(5, 40)])
    times = max(2, min(times, room // (len(phrase) // 3 + 5)))
    if rng.random() < 0.8:
        request = rng.choice(
            [
                "Repeat '%s' %d times with line numbers.",
                'Repeat "%s" %d times with line numbers.',
                "Write '%s' %d times, numbered.",
                "Say '%s' %d times with line numbers.",
            ]
        )
        lines = [f"{number}. {phrase}" for number in range(1, times + 1)]
        return [(request % (phrase, times), "\n".join(lines))]
    times = min(times, 8)
    return [(f"Repeat '{phrase}' {times} times.", "\n".join([phrase] * times))]


def reverse(source: Source, _room: int) -> Turns:
    """Write a list of two to seven words or numbers backwards."""
    rng = source.rng
    words = rng.choice([CONTENT_WORDS, FRUITS, ANIMALS, COLOURS, NAMES])
    length = rng.randint(2, 7)
    if rng.random() < 0.8:
        items = rng.sample(words, length)
    else:
        items = [str(rng.randint(0, 99)) for _ in range(length)]
    request = rng.choice(
        [
            "Reverse this list: %s",
            "Reverse the list: %s",
            "Write this list backwards: %s",
            "Reverse: %s",
        ]
    )
    return [(request % ", ".join(items), ", ".join(items[::-1]))]


def spell(source: Source, _room: int) -> Turns:
    """Spell a word with hyphens between its letters."""
    rng = source.rng
    if rng.random() < 0.75:
        word = rng.choice(CONTENT_WORDS)
    else:
        word = rng.choice(NAMES).lower() if rng.random() < 0.5 else made_up_word(rng)
    request = rng.choice(
        [
            "Spell the word '%s'.",
            "Spell '%s'.",
            "Spell %s.",
            "How do you spell '%s'?",
            "Spell the word %s.",
            "Spell %s letter by letter.",
        ]
    )
    return [(request % word, "-".join(word))]
