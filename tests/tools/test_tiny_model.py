"""The default model's file and its making: corpus, tokenizer, GGUF. Needs no PyTorch."""

import hashlib
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TINY_MODEL = ROOT / "tools" / "tiny-model"
MODELS = ROOT / "models"
sys.path.insert(0, str(TINY_MODEL))

import gguf_file  # noqa: E402
import held_out  # noqa: E402
from corpus import MIXES, Source, conversation, render, text_of  # noqa: E402
from corpus.words import CYRILLIC_LETTERS, EMOJI, FOREIGN_WORDS, GREEK_LETTERS  # noqa: E402
from gguf_file import GgufFile, TensorType  # noqa: E402
from model_spec import ModelSpec, metadata  # noqa: E402
from tokenizer import SPECIAL_TOKENS, Tokenizer  # noqa: E402

# What the model was trained on. A wanted change of the corpus changes this too.
CORPUS_SHA256 = "0d07132762a2df75fa1ed522d04f1bfb9195cab0a712125ed0dc13425942008c"

FROM_TO = re.compile(
    r"(?:(?:Please c|Can you c|C|c)ount(?: up| down| backwards)?|(?:List|Write) the numbers)"
    r" from (\d+) to (\d+)\b.*"
)
BY_FROM_TO = re.compile(r"Count by (\d+)s from (\d+) to \d+\.")
COUNT_TO = re.compile(r"(?:Count|Please count) to (\d+)\.")
SUM = re.compile(r"(?:What is |Calculate |How much is )?(\d+) [+-] (\d+)(?: = \?|\?|\.)?")
SUM_IN_WORDS = re.compile(r"(?:Add|Subtract) (\d+) (?:and|from) (\d+)\.")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer()


@pytest.fixture(scope="module")
def model_bytes() -> bytes:
    return (MODELS / "fermata-tiny.gguf").read_bytes()


@pytest.fixture(scope="module")
def model(model_bytes: bytes) -> GgufFile:
    return gguf_file.decode(model_bytes)


def conversations(seed: int, count: int) -> Iterator[str]:
    """Texts of every training phase."""
    for number, mix in MIXES.items():
        source = Source(random.Random(f"{seed} {number}"), mix)
        for _ in range(count):
            yield text_of(render(*conversation(source)))


def questions(text: str) -> list[str]:
    return re.findall(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", text, re.DOTALL)


def number_pair(question: str) -> tuple[int, int] | None:
    """The first two numbers of a question to count or to add; counts start at 1 unless told."""
    for pattern in (FROM_TO, BY_FROM_TO, SUM, SUM_IN_WORDS):
        if match := pattern.fullmatch(question):
            return int(match[1]), int(match[2])
    match = COUNT_TO.fullmatch(question)
    return (1, int(match[1])) if match else None


def is_kept_out(pair: tuple[int, int]) -> bool:
    return (31 * pair[0] + pair[1]) % 17 == 3


def test_the_same_seed_gives_the_same_corpus_in_another_process() -> None:
    def printed(seed: int, hash_seed: str) -> str:
        command = ["/usr/bin/python3", "-m", "corpus", str(seed), "60", "--mix", "7"]
        return subprocess.run(command, cwd=TINY_MODEL, capture_output=True, text=True, check=True,
                              env=os.environ | {"PYTHONHASHSEED": hash_seed}, timeout=60).stdout

    assert printed(5, "1") == printed(5, "2")
    assert printed(5, "1") != printed(6, "1")


def test_the_corpus_is_the_one_of_the_training() -> None:
    digest = hashlib.sha256()
    for text in conversations(seed=1, count=100):
        digest.update(text.encode())
    assert digest.hexdigest() == CORPUS_SHA256


def test_training_never_sees_a_number_pair_that_is_kept_out() -> None:
    pairs = [pair for text in conversations(seed=2, count=400) for question in questions(text)
             if (pair := number_pair(question))]
    assert len(pairs) > 2000
    assert [pair for pair in pairs if is_kept_out(pair)] == []


def test_the_cases_ask_only_for_number_pairs_that_are_kept_out() -> None:
    asked = [case for case in held_out.cases(random.Random(3))
             if case.category.startswith(("count", "math")) and "by 2s/5s" not in case.category]
    pairs = [number_pair(case.messages[-1]["content"]) for case in asked]
    assert len(pairs) == 280
    assert [pair for pair in pairs if pair is None or not is_kept_out(pair)] == []


def test_held_out_conversations_use_the_other_side_of_the_line() -> None:
    source = Source(random.Random(4), MIXES[2], held_out=True)
    texts = [text_of(render(*conversation(source))) for _ in range(300)]
    pairs = [pair for text in texts for question in questions(text)
             if (pair := number_pair(question))]
    assert len(pairs) > 100
    assert all(map(is_kept_out, pairs))


def test_every_text_of_the_corpus_comes_back_from_its_tokens(tokenizer: Tokenizer) -> None:
    for text in conversations(seed=5, count=60):
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", [
    "", " ", "  two  spaces\n\n\n tabs\t\tx \r\n", "I'll we've DON'T it's x=1;y:=2 3.14",
    "na\u00efve \u03bb\u03cc\u03b3\u03bf\u03c2 a\u0301 \u00a0x \u0661\u0662 \u00bd \u2167",
    '<tool_call>\n{"a": [1, 2]}\n</tool_call><|im_end|>\n', "<|im_start|", "\x00\x7f\ufeff",
])
def test_odd_texts_come_back_from_their_tokens(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


# As libllama 0.4.0 splits them.
@pytest.mark.parametrize("text, tokens", [
    ("I'll count  to\n\n 12", "I ' ll Ġcount Ġ Ġto Ċ Ċ Ġ 1 2"),
    ("\u00a0x \u00a0 x", "Â ł x Ġ Â ł Ġx"),
    ("\u00bd\u2167 x=1;\n", "Â ½ â ħ § Ġx = 1 ; Ċ"),
    ("a\u0301 b", "a Ì ģ Ġb"),
])
def test_words_are_split_as_libllama_splits_them(tokenizer: Tokenizer, text: str,
                                                 tokens: str) -> None:
    assert [tokenizer.tokens[index] for index in tokenizer.encode(text)] == tokens.split(" ")


def test_special_tokens_and_digits_are_single_tokens(tokenizer: Tokenizer) -> None:
    for token in SPECIAL_TOKENS:
        assert tokenizer.encode(token) == [tokenizer.id_of[token]]
    assert len(tokenizer.encode("1234567890")) == 10


def test_each_character_beyond_ascii_is_several_tokens(tokenizer: Tokenizer) -> None:
    text = "".join([*GREEK_LETTERS, *CYRILLIC_LETTERS, *EMOJI, *FOREIGN_WORDS])
    for character in set(text):
        if not character.isascii():
            assert len(tokenizer.encode(character)) == len(character.encode()) > 1


def test_the_model_has_the_vocabulary_of_the_tokenizer(tokenizer: Tokenizer,
                                                       model: GgufFile) -> None:
    values = model.metadata()
    assert values["tokenizer.ggml.tokens"] == tokenizer.tokens
    assert values["tokenizer.ggml.merges"] == [" ".join(pair) for pair in tokenizer.merges]
    assert tokenizer.tokens[values["tokenizer.ggml.eos_token_id"]] == "<|im_end|>"


def test_the_model_file_is_what_the_export_would_write(tokenizer: Tokenizer, model: GgufFile,
                                                       model_bytes: bytes) -> None:
    parameter_count = sum(math.prod(tensor.shape) for tensor in model.tensors)
    spec = ModelSpec(vocabulary=len(tokenizer.tokens))
    entries = metadata(spec, tokenizer, parameter_count, TensorType.F16)
    assert gguf_file.encode(GgufFile(entries, model.tensors)) == model_bytes


@pytest.mark.parametrize("length", [0, 4, 20, 1000, 40_000, -1])
def test_a_part_of_a_model_file_is_refused(model_bytes: bytes, length: int) -> None:
    with pytest.raises(gguf_file.GgufError):
        gguf_file.decode(model_bytes[:length])


def test_the_listed_checksums_are_those_of_the_models() -> None:
    lines = (MODELS / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
             for path in MODELS.glob("*.gguf")}
    assert listed == found
    assert all(digest in (MODELS / "README.md").read_text(encoding="utf-8")
               for digest in listed.values())
