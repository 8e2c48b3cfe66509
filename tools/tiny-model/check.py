#!/usr/bin/python3
"""Cases for the check program, a look at its output, and the chat template against the corpus.

  check.py cases       write the cases that the program `check` answers
  check.py score       read its answers: samples, failures, validity of JSON
  check.py template    render conversations with the chat template (needs python3-jinja2)

Case file: records end with 0x1E, fields with 0x1F. A record is category, expected answer, prompt,
then (without tools) role and content of each message. In category "tok" the expected answer is
the token ids of the prompt. Answer file, alike: category, expected answer (question of a sample),
answer.
"""

import argparse
import collections
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from corpus import Source, conversation, render, text_of
from corpus.tools import tool_conversation
from held_out import DEFAULT_SEED, FREE_JSON, SAMPLE, Case, cases
from model_spec import CHAT_TEMPLATE
from paths import BUILD
from tokenizer import Tokenizer

_RECORD_END, _FIELD_END = "\x1e", "\x1f"
_TOKENIZER_CONVERSATIONS = 400
_TEMPLATE_CONVERSATIONS = 500
_FAILURES_SHOWN = 3  # of each category

_ODD_TEXTS = (
    "  two  spaces\n\n\n tabs\t\tx \r\n",
    "I'll we've DON'T it's x=1;y:=2 3.14",
    "naïve λόγος 東京 🚀🚀 a\u0301 \u00a0x",
    '<tool_call>\n{"a": [1, 2]}\n</tool_call><|im_end|>\n',
    "0123456789 ١٢ ½ ² Ⅷ",
)


def _tokenizer_fields(rng: random.Random) -> Iterator[list[str]]:
    tokenizer, source = Tokenizer(), Source(rng, held_out=True)
    made = (text_of(render(*conversation(source))) for _ in range(_TOKENIZER_CONVERSATIONS))
    for text in [*made, *_ODD_TEXTS]:
        yield ["tok", " ".join(map(str, tokenizer.encode(text))), text]


def _case_fields(case: Case) -> list[str]:
    fields = [case.category, case.answer, case.prompt()]
    if not case.tools:
        for message in case.messages:
            fields += [message["role"], message["content"]]
    return fields


def write_cases(seed: int, path: Path) -> None:
    """Write the case file."""
    rng = random.Random(seed)
    records = [*_tokenizer_fields(rng), *map(_case_fields, cases(rng))]
    content = _RECORD_END.join(_FIELD_END.join(fields) for fields in records)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    print(f"{path}: {len(records)} cases")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _show_failure(category: str, expected: str, answer: str) -> None:
    place = len(os.path.commonprefix([expected, answer]))
    around = slice(max(0, place - 20), place + 40)
    print(f"[{category}] at {place}: expected {expected[around]!r}, got {answer[around]!r}")


def show_answers(path: Path) -> None:
    """Print samples, some failures of each category and how much free JSON is valid."""
    shown: collections.Counter[str] = collections.Counter()
    valid: list[bool] = []
    content = path.read_bytes().decode(errors="replace")
    for record in content.split(_RECORD_END):
        category, expected, answer = record.split(_FIELD_END)
        if category == FREE_JSON:
            valid.append(_is_json_object(answer))
        elif category == SAMPLE:
            print(f"--- {expected}\n{answer}")
        elif expected != answer and shown[category] < _FAILURES_SHOWN:
            shown[category] += 1
            _show_failure(category, expected, answer)
    print(f"free JSON objects that parse: {sum(valid)} of {len(valid)}")


def check_template(seed: int) -> int:
    """How many conversations the chat template renders otherwise than the corpus does."""
    import jinja2  # only this command needs it

    environment = jinja2.Environment()
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(CHAT_TEMPLATE)
    source = Source(random.Random(seed))
    different = 0
    for index in range(_TEMPLATE_CONVERSATIONS):
        messages, tools = conversation(source) if index % 2 else tool_conversation(source)
        rendered = template.render(messages=messages, tools=tools, add_generation_prompt=True)
        different += rendered != text_of(render(messages, tools, add_generation_prompt=True))
    print(f"the template differs from the corpus in {different} of {_TEMPLATE_CONVERSATIONS}")
    return different


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["cases", "score", "template"])
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="default: %(default)s")
    parser.add_argument("--cases", type=Path, default=BUILD / "cases.bin", help="the case file")
    parser.add_argument(
        "--answers", type=Path, default=BUILD / "answers.bin", help="the answer file"
    )
    arguments = parser.parse_args()
    if arguments.command == "cases":
        write_cases(arguments.seed, arguments.cases)
    elif arguments.command == "score":
        show_answers(arguments.answers)
    elif check_template(arguments.seed):
        sys.exit(1)


if __name__ == "__main__":
    main()
