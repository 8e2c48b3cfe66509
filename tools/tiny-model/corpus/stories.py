"""Stories from a small grammar."""

import random
from dataclasses import dataclass

from corpus.source import Source, Turns
from corpus.words import (
    ADJECTIVES,
    ANIMALS,
    COLOURS,
    FOODS,
    JOBS,
    NAMES,
    OBJECTS,
    PLACES,
    VERBS,
    made_up_word,
    with_article,
)


@dataclass(frozen=True)
class _Cast:
    """Who and what a story is about. `subject`, `possessive`, `object_` are the hero's pronouns."""

    hero_kind: str
    hero: str
    subject: str
    possessive: str
    object_: str
    thing: str
    home: str
    far_place: str
    adjectives: tuple[str, str, str]
    friend_kind: str
    friend: str
    food: str


def _draw_cast(rng: random.Random) -> _Cast:
    animal, thing, home = rng.choice(ANIMALS), rng.choice(OBJECTS), rng.choice(PLACES)
    hero_kind = rng.choice(JOBS) if rng.random() < 0.4 else animal
    hero = rng.choice(NAMES) if rng.random() < 0.85 else made_up_word(rng).capitalize()
    pronouns = ("she", "her", "her") if rng.random() < 0.5 else ("he", "his", "him")
    adjectives = (rng.choice(ADJECTIVES), rng.choice(ADJECTIVES), rng.choice(ADJECTIVES))
    return _Cast(
        hero_kind,
        hero,
        *pronouns,
        thing=thing,
        home=home,
        adjectives=adjectives,
        friend_kind=rng.choice([kind for kind in ANIMALS if kind != animal]),
        friend=rng.choice([name for name in NAMES if name != hero]),
        far_place=rng.choice([place for place in PLACES if place != home]),
        food=rng.choice(FOODS),
    )


def _draw_size(rng: random.Random, room: int) -> str:
    share = rng.random()
    if share < 0.5 or room < 400:
        return "short"
    return "" if share < 0.75 else "long"


def _request(rng: random.Random, cast: _Cast, size: str) -> str:
    hero = with_article(cast.hero_kind)
    topic = rng.choice(
        [
            f" about {hero}",
            f" about {hero} and {with_article(cast.thing)}",
            f" about {hero} named {cast.hero}",
            f" about {hero} in the {cast.home}",
            "",
            "",
        ]
    )
    template = rng.choice(
        [
            "Tell me a %sstory%s.",
            "Write a %sstory%s.",
            "Please tell me a %sstory%s.",
            "Can you tell me a %sstory%s?",
        ]
    )
    return template % (f"{size} " if size else "", topic)


def _beginning(rng: random.Random, cast: _Cast) -> list[str]:
    hero, thing, home = cast.hero, cast.thing, cast.home
    kind = f"{with_article(cast.adjectives[0])} {cast.hero_kind}"
    found = f"{with_article(cast.adjectives[1])} {thing}"
    who = rng.choice(
        [
            f"Once upon a time there was {kind} named {hero} who lived near the {home}.",
            f"In a house by the {home} lived {kind} called {hero}.",
            f"Long ago, {kind} named {hero} lived beside the {home}.",
        ]
    )
    habit = rng.choice(
        [
            f"Every morning {hero} went out to look at the sky and drink {cast.possessive} tea.",
            f"{hero} had one treasure, and it was {found}.",
            f"Most of all, {cast.subject} liked to {rng.choice(VERBS)} and to eat {cast.food}.",
            f"Nobody knew the {home} better than {hero} did.",
        ]
    )
    event = rng.choice(
        [
            f"One day {hero} found {found} under a tree.",
            f"One evening the {thing} was gone, and {hero} could not find it anywhere.",
            f"One night a strange sound came from the {cast.far_place}.",
            f"One winter the wind carried {found} right to {cast.possessive} door.",
        ]
    )
    oneself = "herself" if cast.subject == "she" else "himself"
    speech = rng.choice(
        [
            f'"What is this?" said {hero}.',
            f'"I must go to the {cast.far_place}," said {hero}.',
            f'"I wonder who lost it," said {hero}.',
            f'"This is a good day to begin," {hero} said to {oneself}.',
        ]
    )
    return [who, habit, event, speech]


def _middle(rng: random.Random, cast: _Cast, size: str) -> list[str]:
    hero, friend, thing, far_place = cast.hero, cast.friend, cast.thing, cast.far_place
    companion = f"{with_article(cast.adjectives[2])} {cast.friend_kind} named {friend}"
    sentences = [
        f"So {hero} packed some {cast.food} and walked to the {far_place}.",
        f"On the way {cast.subject} met {companion}.",
        f'"Where are you going?" asked {friend}.',
        f'"I am looking for the owner of this {thing}," said {hero}.',
        f'"Then I will come with you," said the {cast.friend_kind}.',
        "They walked all day, and the road was long.",
        f"At the {far_place} they sat down and shared the {cast.food}.",
        f"The rain began to fall, but {hero} did not stop.",
        f"They asked the {rng.choice(JOBS)}, but the {rng.choice(['man', 'woman', 'child'])} "
        "only smiled.",
        f"{hero} held the {thing} close to {cast.possessive} heart.",
        f"When the moon came up, {friend} could see the whole {far_place}.",
        "Behind a wall they found a small door, and behind the door was a "
        f"{cast.adjectives[2]} room.",
        f'"Listen," said {friend}, "I can hear a song."',
        f"It was an old song about the {cast.home} and the sea.",
        "Three times they lost the path, and three times they found it again.",
        f"{hero} was tired, but {cast.subject} was happy too.",
        f"A {rng.choice(COLOURS)} bird flew over them and showed them the way.",
        f"The {thing} shone in the dark like a little star.",
        f"They slept under the trees and dreamed of {cast.food}.",
        f"In the morning the {far_place} was full of light.",
        f'"Do not be afraid," said {hero} to {friend}.',
        f"There they met {with_article(rng.choice(JOBS))}, who had been looking for the {thing} "
        "for a year.",
    ]
    counts = {"short": rng.randint(1, 5), "": rng.randint(5, 10), "long": rng.randint(12, 22)}
    chosen = rng.sample(range(len(sentences)), counts[size])
    return [sentences[index] for index in sorted(chosen)]


def _end(rng: random.Random, cast: _Cast, size: str) -> list[str]:
    hero = cast.hero
    going_home = (
        f"{hero} went home" if size == "short" else f"{hero} and {cast.friend} went home together"
    )
    solution = rng.choice(
        [
            f"At last {hero} gave the {cast.thing} back, and everyone was glad.",
            f"In the end the {cast.thing} was found, and {hero} laughed.",
            f"When the work was done, {going_home}.",
        ]
    )
    farewell = rng.choice(
        [
            f"From that day on, {hero} was never lonely again.",
            f"And {hero} kept the memory of that day for ever.",
            f"And if you go to the {cast.home}, you may still see {cast.object_} there.",
            f"That night {hero} slept very well.",
        ]
    )
    return [solution, farewell]


def story(source: Source, room: int) -> Turns:
    """A story of 7 to 28 sentences; long ones have paragraphs."""
    rng = source.rng
    cast = _draw_cast(rng)
    size = _draw_size(rng, room)
    request = _request(rng, cast, size)
    sentences = _beginning(rng, cast) + _middle(rng, cast, size) + _end(rng, cast, size)
    if size == "long" or rng.random() < 0.3:
        length = max(3, len(sentences) // 3)
        paragraphs = [
            " ".join(sentences[start : start + length])
            for start in range(0, len(sentences), length)
        ]
        return [(request, "\n\n".join(paragraphs))]
    return [(request, " ".join(sentences))]
