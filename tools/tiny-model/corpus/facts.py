"""Facts that the user tells and asks for later."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from corpus.words import (
    CITIES,
    COLOURS,
    CONTENT_WORDS,
    FOODS,
    FRUITS,
    JOBS,
    made_up_word,
    person_name,
    with_article,
)


@dataclass(frozen=True)
class Fact:
    """One kind of fact; `%s` in its sentences stands for the value."""

    kind: str
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    answer: str
    draw_value: Callable[[random.Random], str]
    replies: tuple[str, ...] = ("I will remember that.", "Noted.", "Got it: %s.")


FACTS = (
    Fact(
        "name",
        (
            "My name is %s.",
            "I am called %s.",
            "Hi, my name is %s.",
            "Hello! My name is %s.",
            "Please remember that my name is %s.",
        ),
        ("What is my name?", "Do you remember my name?", "What's my name?", "Tell me my name."),
        "Your name is %s.",
        person_name,
        replies=("Nice to meet you, %s.", "Hello, %s!"),
    ),
    Fact(
        "colour",
        (
            "My favourite colour is %s.",
            "Remember: my favourite colour is %s.",
            "The colour I like most is %s.",
        ),
        (
            "What is my favourite colour?",
            "Which colour do I like most?",
            "Tell me my favourite colour.",
        ),
        "Your favourite colour is %s.",
        lambda rng: rng.choice(COLOURS),
    ),
    Fact(
        "number",
        (
            "My lucky number is %s.",
            "Remember the number %s.",
            "Please remember the number %s.",
            "My number is %s.",
        ),
        (
            "Which number did I tell you?",
            "What is my number?",
            "What number did I ask you to remember?",
            "What is my lucky number?",
        ),
        "Your number is %s.",
        lambda rng: str(rng.randint(0, rng.choice([9, 99, 999, 9999, 99999]))),
    ),
    Fact(
        "city",
        ("I live in %s.", "My home is in %s.", "Remember that I live in %s."),
        ("Where do I live?", "Which city do I live in?", "Do you remember where I live?"),
        "You live in %s.",
        lambda rng: rng.choice(CITIES) if rng.random() < 0.7 else made_up_word(rng).capitalize(),
    ),
    Fact(
        "word",
        (
            "The code word is %s.",
            "Remember the code word %s.",
            "The secret word is %s.",
            "The password is %s.",
        ),
        (
            "What is the code word?",
            "What was the code word?",
            "Tell me the code word.",
            "What is the secret word?",
            "What is the password?",
        ),
        "The code word is %s.",
        lambda rng: rng.choice(CONTENT_WORDS) if rng.random() < 0.5 else made_up_word(rng),
    ),
    Fact(
        "pet",
        (
            "My pet is called %s.",
            "I have a pet named %s.",
            "My dog is called %s.",
            "My cat is called %s.",
        ),
        (
            "What is my pet called?",
            "What is the name of my pet?",
            "Do you remember my pet's name?",
        ),
        "Your pet is called %s.",
        person_name,
    ),
    Fact(
        "food",
        ("My favourite food is %s.", "I like to eat %s most of all."),
        ("What is my favourite food?", "What do I like to eat?"),
        "Your favourite food is %s.",
        lambda rng: rng.choice(FOODS + FRUITS),
    ),
    Fact(
        "age",
        ("I am %s years old.", "My age is %s."),
        ("How old am I?", "What is my age?"),
        "You are %s years old.",
        lambda rng: str(rng.randint(3, 99)),
    ),
    Fact(
        "friend",
        ("My best friend is %s.", "My friend is called %s."),
        ("Who is my best friend?", "What is my friend called?"),
        "Your best friend is %s.",
        person_name,
    ),
    Fact(
        "job",
        ("I work as %s.", "My job is %s."),
        ("What is my job?", "What do I work as?"),
        "You work as %s.",
        lambda rng: with_article(rng.choice(JOBS)),
        replies=("Noted.", "Noted.", "Noted."),
    ),
)


@dataclass(frozen=True)
class KnownFact:
    """A fact with its value in one conversation."""

    fact: Fact
    value: str

    @classmethod
    def draw(cls, rng: random.Random, fact: Fact) -> "KnownFact":
        """The fact with a value of its own."""
        return cls(fact, fact.draw_value(rng))

    def statement(self, rng: random.Random) -> str:
        """How the user tells it."""
        return rng.choice(self.fact.statements) % self.value

    def told(self, rng: random.Random) -> tuple[str, str]:
        """The turn in which the user tells it."""
        statement = self.statement(rng)
        return statement, rng.choice(self.fact.replies).replace("%s", self.value)

    def asked(self, rng: random.Random) -> tuple[str, str]:
        """The turn in which the user asks for it."""
        return rng.choice(self.fact.questions), self.fact.answer % self.value
