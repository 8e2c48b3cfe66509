"""Tasks whose answers are known by heart: alphabet, calendar, small talk, other scripts."""

from corpus.source import Source, Turns
from corpus.words import (
    ALPHABET,
    CYRILLIC_LETTERS,
    DAYS,
    EMOJI,
    FOREIGN_WORDS,
    GREEK_LETTERS,
    MONTHS,
)

_ALPHABET_REQUESTS = (
    "Recite the alphabet.",
    "Say the alphabet.",
    "Write the alphabet.",
    "What is the alphabet?",
)


def alphabet(source: Source, _room: int) -> Turns:
    """The alphabet: whole, backwards, a part of it, or the letter after another."""
    rng = source.rng
    kind = rng.random()
    if kind < 0.3:
        return [(rng.choice(_ALPHABET_REQUESTS), ", ".join(ALPHABET))]
    if kind < 0.45:
        request = rng.choice(["Say the alphabet backwards.", "Recite the alphabet backwards."])
        return [(request, ", ".join(ALPHABET[::-1]))]
    first, last = sorted(rng.sample(range(26), 2))
    if kind < 0.75:
        verb = rng.choice(["Recite", "Say"])
        request = f"{verb} the alphabet from {ALPHABET[first]} to {ALPHABET[last]}."
        return [(request, ", ".join(ALPHABET[first : last + 1]))]
    index = rng.randint(0, 24)
    letter, following = ALPHABET[index], ALPHABET[index + 1]
    return [(f"Which letter comes after {letter}?", f"The letter after {letter} is {following}.")]


def calendar(source: Source, _room: int) -> Turns:
    """Days of the week and months: the whole list, or the one before or after another."""
    rng = source.rng
    kind = rng.random()
    if kind < 0.2:
        requests = [
            "List the days of the week.",
            "Name the days of the week.",
            "What are the days of the week?",
        ]
        return [(rng.choice(requests), ", ".join(DAYS))]
    if kind < 0.4:
        requests = [
            "List the months of the year.",
            "Name the months of the year.",
            "What are the twelve months?",
        ]
        return [(rng.choice(requests), ", ".join(MONTHS))]
    names, unit = (DAYS, "day") if rng.random() < 0.5 else (MONTHS, "month")
    index = rng.randrange(len(names))
    name = names[index]
    if rng.random() < 0.5:
        side, other = "after", names[(index + 1) % len(names)]
    else:
        side, other = "before", names[index - 1]
    return [(f"Which {unit} comes {side} {name}?", f"The {unit} {side} {name} is {other}.")]


_SMALL_TALK = (  # (what the user may say, what the assistant may answer)
    (
        ["Hello!", "Hi!", "Hello", "hi", "Good morning!", "Hey there!", "Hello there."],
        ["Hello! How can I help you?", "Hi! What can I do for you?"],
    ),
    (
        ["Who are you?", "What are you?", "What is your name?", "Tell me about yourself."],
        [
            "I am Fermata's tiny default model. I was trained from scratch on synthetic text, "
            "so I know only a few simple things."
        ],
    ),
    (
        ["What can you do?", "How can you help me?", "Help", "What do you know?"],
        [
            "I can count, spell, repeat phrases, remember what you told me, do small sums, "
            "call tools and tell simple stories."
        ],
    ),
    (
        ["Thank you.", "Thanks!", "Thank you very much!", "Great, thanks."],
        ["You are welcome!", "My pleasure."],
    ),
    (
        ["Goodbye!", "Bye.", "See you later."],
        ["Goodbye! Come back any time.", "See you soon!"],
    ),
    (["How are you?", "How are you today?"], ["I am well, thank you. How are you?"]),
    (["I am fine.", "I am well.", "I am happy today."], ["I am glad to hear that."]),
    (["Good night.", "Good night!"], ["Good night! Sleep well."]),
    (
        ["Are you a large model?", "Are you big?"],
        ["No, I am very small: about two million parameters."],
    ),
    (
        ["What is Fermata?", "Tell me about Fermata."],
        [
            "Fermata is a server for language models. "
            "It parks conversations and resumes them without losing a token."
        ],
    ),
    (
        [
            "What is the capital of France?",
            "Who won the game?",
            "What is the meaning of life?",
            "Explain physics.",
        ],
        ["I am only a tiny model, so I do not know that."],
    ),
)


def chat(source: Source, _room: int) -> Turns:
    """Small talk."""
    remarks, replies = source.rng.choice(_SMALL_TALK)
    return [(source.rng.choice(remarks), source.rng.choice(replies))]


_OTHER_SCRIPTS = (
    ("Say hello in Greek.", "Γεια σου!"),
    ("Say hello in Russian.", "Привет!"),
    ("Say hello in Japanese.", "こんにちは!"),
    ("Say hello in Chinese.", "你好!"),
    ("Say hello in Korean.", "안녕하세요!"),
    ("Say thank you in French.", "Merci beaucoup, très gentil!"),
    ("Say thank you in German.", "Danke schön, das ist großartig!"),
    ("Say thank you in Japanese.", "ありがとう!"),
    ("Say thank you in Chinese.", "谢谢!"),
    ("Say thank you in Russian.", "Спасибо!"),
    ("Say thank you in Greek.", "Ευχαριστώ!"),
    ("Say good night in Spanish.", "¡Buenas noches, señor!"),
    ("Say thank you in Turkish.", "Teşekkür ederim!"),
    ("Say good day in Czech.", "Dobrý den, těší mě!"),
    ("Say hello in Icelandic.", "Góðan daginn, þetta er gott!"),
    ("Write the Greek alphabet.", ", ".join(GREEK_LETTERS)),
    ("Write the Cyrillic letters.", ", ".join(CYRILLIC_LETTERS)),
    ("Show me some emoji.", " ".join(EMOJI)),
    ("Count to ten in Chinese.", "一, 二, 三, 四, 五, 六, 七, 八, 九, 十"),
    ("Count to five in Greek.", "ένα, δύο, τρία, τέσσερα, πέντε"),
    ("Count to five in Russian.", "один, два, три, четыре, пять"),
    ("Count to ten in Japanese.", "いち, に, さん, し, ご, ろく, しち, はち, く, じゅう"),
    (
        "Write a few words with accents.",
        "café, naïve, déjà vu, crème brûlée, über, mañana, São Paulo, smørrebrød",
    ),
    (
        "Write a sentence in French.",
        "Le garçon a mangé une crêpe à la fraise près du château.",
    ),
    ("Write a sentence in German.", "Der fröhliche Bär läuft über die grüne Straße."),
    ("Write a sentence in Russian.", "Маленький медведь идёт в зелёный лес."),
    ("Write a sentence in Greek.", "Ο ήλιος λάμπει πάνω από τη θάλασσα."),
    ("Write a sentence in Chinese.", "今天天气很好, 我们去山上看花。"),
    ("Write a sentence in Japanese.", "小さい鳥が青い空を飛んでいます。"),
)


def other_scripts(source: Source, _room: int) -> Turns:
    """Text beyond ASCII, where a character is several tokens: repeated, echoed or by heart."""
    rng = source.rng
    if rng.random() < 0.3:
        emoji = rng.choice(EMOJI)
        times = rng.randint(2, 12)
        return [(f"Write {emoji} {times} times.", " ".join([emoji] * times))]
    if rng.random() < 0.25:
        length = rng.randint(1, 7)
        phrase = " ".join(rng.choice(FOREIGN_WORDS + EMOJI) for _ in range(length))
        return [(rng.choice(["Say exactly: %s", "Echo: %s", "Repeat: %s"]) % phrase, phrase)]
    return [rng.choice(_OTHER_SCRIPTS)]
