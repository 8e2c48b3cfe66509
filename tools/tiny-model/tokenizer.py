#!/usr/bin/python3
"""Byte-level BPE (GPT-2 byte alphabet, qwen2 pre-tokenisation): encoder and trainer.

  tokenizer.py train     learn merges from the corpus and write a tokenizer file
  tokenizer.py encode    print the token ids of the text on standard input
"""

import argparse
import collections
import itertools
import json
import random
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from corpus import Source, conversation, render, text_of
from paths import BUILD, HERE

Pair = tuple[str, str]

END_OF_TEXT, START, END_OF_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CONTROL_TOKENS = (END_OF_TEXT, START, END_OF_TURN)
USER_TOKENS = ("<tool_call>", "</tool_call>")
SPECIAL_TOKENS = CONTROL_TOKENS + USER_TOKENS

_TRAINING_SEED = 4242
_TRAINING_CONVERSATIONS = 4000


def _character_sets() -> dict[str, str]:
    """The characters of each general category (L letters, N numbers), as insides of re sets."""
    sets: dict[str, str] = collections.defaultdict(str)
    codes = range(sys.maxunicode + 1)
    for category, run in itertools.groupby(codes, lambda code: unicodedata.category(chr(code))[0]):
        first, *others = run
        last = others[-1] if others else first
        sets[category] += f"\\U{first:08x}-\\U{last:08x}"
    return sets


def _word_pattern() -> re.Pattern[str]:
    """The qwen2 split: contractions, words, single digits, punctuation, line ends, spaces."""
    sets = _character_sets()
    letter, number = sets["L"], sets["N"]
    space = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    return re.compile(
        r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
        rf"|[^\r\n{letter}{number}]?[{letter}]+"
        rf"|[{number}]"
        rf"| ?[^{space}{letter}{number}]+[\r\n]*"
        rf"|[{space}]*[\r\n]+"
        rf"|[{space}]+(?![^{space}])"
        rf"|[{space}]+"
    )


def _byte_alphabet() -> list[str]:
    """The printable character that stands for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    stand_ins = iter(range(256, 512))
    return [chr(byte if byte in printable else next(stand_ins)) for byte in range(256)]


_WORD = _word_pattern()
_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")
_CHARACTER_OF_BYTE = _byte_alphabet()
_BYTE_OF_CHARACTER = {character: byte for byte, character in enumerate(_CHARACTER_OF_BYTE)}


def _pieces(text: str) -> Iterator[str]:
    """The special tokens and the words of a text; together they are the text."""
    for part in _SPECIAL.split(text):
        if part in SPECIAL_TOKENS:
            yield part
        else:
            yield from _WORD.findall(part)


class Tokenizer:
    """Turns text into token ids and back. Not for several threads: it remembers words."""

    def __init__(self, path: Path = HERE / "tokenizer.json") -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        self.tokens: list[str] = content["tokens"]
        self.merges: list[Pair] = [(left, right) for left, right in content["merges"]]
        self.id_of = {token: index for index, token in enumerate(self.tokens)}
        self._rank_of = {merge: rank for rank, merge in enumerate(self.merges)}
        self._known_words: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """The token ids of a text; special tokens are recognised wherever they stand."""
        ids: list[int] = []
        for piece in _pieces(text):
            if piece in SPECIAL_TOKENS:
                ids.append(self.id_of[piece])
            else:
                ids += self._encode_word(piece)
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text of token ids; incomplete characters become U+FFFD."""
        data = bytearray()
        for index in ids:
            token = self.tokens[index]
            if token in SPECIAL_TOKENS:
                data += token.encode()
            else:
                data += bytes(_BYTE_OF_CHARACTER[character] for character in token)
        return data.decode(errors="replace")

    def _encode_word(self, word: str) -> list[int]:
        if word not in self._known_words:
            parts = [_CHARACTER_OF_BYTE[byte] for byte in word.encode()]
            while True:
                ranked = [
                    (self._rank_of[pair], place)
                    for place, pair in enumerate(zip(parts, parts[1:]))
                    if pair in self._rank_of
                ]
                if not ranked:
                    break
                _, place = min(ranked)
                parts[place : place + 2] = [parts[place] + parts[place + 1]]
            self._known_words[word] = [self.id_of[part] for part in parts]
        return self._known_words[word]


def _count_words() -> collections.Counter[str]:
    """How often each ASCII word appears in the corpus; other scripts stay split into bytes."""
    source = Source(random.Random(_TRAINING_SEED))
    counts: collections.Counter[str] = collections.Counter()
    for _ in range(_TRAINING_CONVERSATIONS):
        text = text_of(render(*conversation(source)))
        counts.update(
            piece for piece in _pieces(text) if piece.isascii() and piece not in SPECIAL_TOKENS
        )
    return counts


def _merged(parts: list[str], pair: Pair) -> list[str]:
    result: list[str] = []
    place = 0
    while place < len(parts):
        if tuple(parts[place : place + 2]) == pair:
            result.append(parts[place] + parts[place + 1])
            place += 2
        else:
            result.append(parts[place])
            place += 1
    return result


class _MergeLearner:
    """Words as lists of parts, and the weight of each pair of neighbours."""

    def __init__(self, counts: collections.Counter[str]) -> None:
        self._words: list[list[str]] = []
        self._weights: list[int] = []
        self._pair_weights: collections.Counter[Pair] = collections.Counter()
        self._words_with: dict[Pair, set[int]] = collections.defaultdict(set)
        for word, count in counts.items():
            if len(word) > 1:
                self._words.append([_CHARACTER_OF_BYTE[byte] for byte in word.encode()])
                # Damped, so that the tail of the word lists gets tokens of its own.
                self._weights.append(int(count**0.75 * 10))
                self._add_pairs(len(self._words) - 1)

    def learn(self, merge_count: int) -> list[Pair]:
        """The heaviest pairs, one after another, each merged before the next is chosen."""
        merges: list[Pair] = []
        while len(merges) < merge_count:
            best = max(self._pair_weights, key=lambda pair: (self._pair_weights[pair], pair))
            if self._pair_weights[best] <= 0:
                break
            merges.append(best)
            for index in list(self._words_with[best]):
                self._remove_pairs(index)
                self._words[index] = _merged(self._words[index], best)
                self._add_pairs(index)
            del self._pair_weights[best]
        return merges

    def _add_pairs(self, index: int) -> None:
        parts = self._words[index]
        for pair in zip(parts, parts[1:]):
            self._pair_weights[pair] += self._weights[index]
            self._words_with[pair].add(index)

    def _remove_pairs(self, index: int) -> None:
        parts = self._words[index]
        for pair in zip(parts, parts[1:]):
            self._pair_weights[pair] -= self._weights[index]
            self._words_with[pair].discard(index)


def train(vocabulary_size: int, path: Path) -> None:
    """Learn merges from the corpus and write the tokenizer file."""
    merge_count = vocabulary_size - len(_CHARACTER_OF_BYTE) - len(SPECIAL_TOKENS)
    merges = _MergeLearner(_count_words()).learn(merge_count)
    tokens = [*_CHARACTER_OF_BYTE, *(left + right for left, right in merges), *SPECIAL_TOKENS]
    assert len(set(tokens)) == len(tokens)
    content = json.dumps({"tokens": tokens, "merges": merges}, ensure_ascii=False)
    path.write_text(content, encoding="utf-8")
    print(f"{path}: {len(tokens)} tokens, {len(merges)} merges")


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    train_parser = commands.add_parser("train", help="learn merges from the corpus")
    train_parser.add_argument("--vocabulary-size", type=int, default=1280)
    train_parser.add_argument("--out", type=Path, default=BUILD / "tokenizer.json")
    commands.add_parser("encode", help="print the token ids of standard input")
    arguments = parser.parse_args()
    if arguments.command == "train":
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        train(arguments.vocabulary_size, arguments.out)
    else:
        print(*Tokenizer().encode(sys.stdin.read()))


if __name__ == "__main__":
    main()
