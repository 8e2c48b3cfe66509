"""/infill: what stands between a prefix and a suffix, in llama-server's order of the parts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gguf_keys import with_numbers
from server import TINY, Server, force

# Tokens of control characters, which the model never writes.
PRE, SUF, MID, REP, SEP = "\x01", "\x02", "\x03", "\x04", "\x05"
MARKS = {"tokenizer.ggml.fim_pre_token_id": 1, "tokenizer.ggml.fim_suf_token_id": 2,
         "tokenizer.ggml.fim_mid_token_id": 3}
FILES = {"tokenizer.ggml.fim_rep_token_id": 4, "tokenizer.ggml.fim_sep_token_id": 5}
CODE = {"input_prefix": "def f(x):\n    ", "input_suffix": "\n    return y\n"}
WINDOW = 1024


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts servers of a model with the three marks and, if `files`, those of repositories."""
    folder = tmp_path_factory.mktemp("fim")
    servers: dict[Any, Server] = {}

    def start(*args: str, files: bool = False) -> Server:
        key = (*args, files)
        if key not in servers:
            path = folder / f"fim-{files}.gguf"
            model = path if path.exists() else with_numbers(TINY, path,
                                                            MARKS | (FILES if files else {}))
            servers[key] = Server("-c", str(WINDOW), "-np", "2", *args, model=model)
        return servers[key]

    yield start
    for one in servers.values():
        one.check_clean()
        one.check_alive()
        assert one.stop() == 0


def prompt_of(server: Server, **body: Any) -> str:
    answer = server.post("/infill", {"n_predict": 1, "response_fields": ["prompt"]} | body)
    assert answer.status_code == 200, answer.text
    return answer.json()["prompt"]


def test_the_parts_stand_in_order(marked: Callable[..., Server]) -> None:
    server = marked()
    assert prompt_of(server, **CODE) == \
        f"{PRE}def f(x):\n    {SUF}\n    return y\n{MID}"
    assert prompt_of(server, **CODE, prompt="y = ") == \
        f"{PRE}def f(x):\n    y = {SUF}\n    return y\n{MID}"
    assert prompt_of(server, input_prefix="", input_suffix="") == PRE + SUF + MID
    first_suffix = marked("--spm-infill")
    assert prompt_of(first_suffix, **CODE, prompt="y = ") == \
        f"{SUF}\n    return y\n{PRE}def f(x):\n    y = {MID}"


def test_other_files_come_before(marked: Callable[..., Server]) -> None:
    extra = [{"filename": "a.py", "text": "A = 1\n"}, {"text": "B = 2\n"}]
    parts = f"{PRE}x{SUF}y{MID}"
    body = {"input_prefix": "x", "input_suffix": "y", "input_extra": extra}
    small = marked("-b", "64")
    snippet = "\n\n--- snippet ---\n\n"
    assert prompt_of(small, **body) == f"{snippet}A = 1\n{snippet}B = 2\n{parts}"
    files = marked("-b", "64", files=True)
    assert prompt_of(files, **body) == \
        f"{REP}myproject\n{SEP}a.py\nA = 1\n{SEP}tmp\nB = 2\n{SEP}filename\n{parts}"
    # Where a batch is the whole window nothing is left for them.
    assert prompt_of(marked(files=True), **body) == parts


def test_the_parts_are_cut_to_the_batch(marked: Callable[..., Server]) -> None:
    server = marked("-b", "64")
    body = {"input_prefix": [300 + i for i in range(200)],
            "input_suffix": [600 + i for i in range(200)], "prompt": ""}
    whole = prompt_of(server, **body)
    detokenize = {"tokens": [300 + i for i in range(152, 200)]}
    prefix = server.post("/detokenize", detokenize).json()["content"]
    suffix = server.post("/detokenize", {"tokens": [600 + i for i in range(14)]}).json()["content"]
    assert whole == PRE + prefix + SUF + suffix + MID
    # However long they are, the window has room for the reply that is asked for.
    wide = marked()
    long = {"input_prefix": "word " * 5000, "input_suffix": " word" * 5000, "n_predict": 100,
            "ignore_eos": True}
    reply = wide.post("/infill", long).json()
    assert reply["tokens_predicted"] == 100 and not reply["truncated"]


def test_the_reply_is_that_of_a_completion(marked: Callable[..., Server]) -> None:
    server = marked()
    body = CODE | {"n_predict": 40, "temperature": 0, "grammar": force("y = 2 * x"), "n_probs": 1}
    reply = server.post("/infill", body).json()
    assert reply["content"] == "y = 2 * x" and reply["stop_type"] == "eos"
    assert len(reply["completion_probabilities"]) == reply["tokens_predicted"] - 1
    events = list(server.stream("/infill", body))
    assert "".join(event["content"] for event in events) == "y = 2 * x"
    assert events[-1]["stop"] is True and "[DONE]" not in events
    assert [one["index"] for one in server.post("/infill", body | {"n": 2}).json()] == [0, 1]


def test_lines_that_leave_the_block_end_it(marked: Callable[..., Server]) -> None:
    """`n_indent`: clients ask for lines of one block; others were part of the reply."""
    server = marked()
    text = "y = 1\n    z = 2\n  q\n    r"
    body = CODE | {"n_predict": 60, "grammar": force(text)}
    for least, shown in ((0, text), (2, text), (3, "y = 1\n    z = 2\n  "), (5, "y = 1\n    ")):
        whole = server.post("/infill", body | {"n_indent": least}).json()
        assert whole["content"] == shown
        assert whole["stop_type"] == ("eos" if shown == text else "limit")
        events = list(server.stream("/infill", body | {"n_indent": least, "stop": ["zzz", "r"]}))
        streamed = "".join(event["content"] for event in events)
        assert streamed == (shown if shown != text else text.removesuffix("r"))
    probable = server.post("/infill", body | {"n_indent": 3, "n_probs": 1}).json()
    said = b"".join(bytes(one["bytes"]) for one in probable["completion_probabilities"])
    assert said.decode().startswith("y = 1\n    z = 2\n")
    assert "q" not in said.decode()


@pytest.mark.parametrize(("body", "words"), [
    ({"input_suffix": "b"}, "input_prefix"), ({"input_prefix": "a"}, "input_suffix"),
    (CODE | {"prompt": 5}, "prompt"), (CODE | {"prompt": ["x"]}, "prompt"),
    (CODE | {"input_extra": {}}, "input_extra"), (CODE | {"input_extra": ["x"]}, "input_extra[0]"),
    (CODE | {"input_extra": [{"filename": "a"}]}, "input_extra[0].text"),
    (CODE | {"input_extra": [{"text": "a", "filename": 5}]}, "input_extra[0].filename"),
    (CODE | {"input_prefix": [-1]}, "input_prefix"), (CODE | {"input_prefix": 5}, "input_prefix"),
    (CODE | {"n_indent": -1}, "n_indent"), (CODE | {"n_indent": "x"}, "n_indent"),
    (CODE | {"input_extra": [{"text": "x"}] * 1025}, "input_extra")])
def test_mistakes_name_their_field(marked: Callable[..., Server], body: dict[str, Any],
                                   words: str) -> None:
    answer = marked().post("/infill", body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"].startswith(words)


def test_a_model_without_marks_says_which(server: Server) -> None:
    answer = server.post("/infill", CODE)
    assert answer.status_code == 501
    error = answer.json()["error"]
    assert error["type"] == "not_supported_error"
    assert error["message"] == ("Infill is not supported by this model: prefix token is missing. "
                                "suffix token is missing. middle token is missing. ")
