"""Fields of completions: each is honoured, or its answer says why not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from server import PATIENCE_S, Server, count_text, force, raw_post, turns, wait_until

SKY = "The sky is blue?\nNext"
ROUTES = ["/completion", "/v1/completions", "/v1/chat/completions"]


def asked(path: str, text: str, **body: Any) -> dict[str, Any]:
    """The body of a request to any of the routes."""
    prompt = {"messages": turns(text)} if "chat" in path else {"prompt": text}
    return prompt | {"n_predict": 100} | body


def text_of(path: str, reply: dict[str, Any]) -> str:
    if path == "/completion":
        return reply["content"]
    (choice,) = reply["choices"]
    return choice["message"]["content"] if "chat" in path else choice["text"]


def pieces(path: str, events: list[Any]) -> list[str]:
    if path == "/completion":
        return [event["content"] for event in events]
    choices = [choice for event in events if event != "[DONE]" for choice in event["choices"]]
    return [choice["delta"].get("content", "") if "chat" in path else choice["text"]
            for choice in choices]


def test_response_fields(server: Server) -> None:
    body = {"prompt": "1, 2,", "n_predict": 4, "n_probs": 1}
    paths = ["content", "generation_settings/n_predict", "timings/predicted_n", "no/such", "stop/x",
             "completion_probabilities"]
    reply = server.complete(response_fields=paths, **body)
    assert list(reply) == ["content", "generation_settings/n_predict", "timings/predicted_n",
                           "completion_probabilities"]
    assert reply["generation_settings/n_predict"] == reply["timings/predicted_n"] == 4
    assert server.complete(response_fields=["nothing"], **body) == {}
    only = server.complete(response_fields=["completion_probabilities"], **body)
    assert len(only["completion_probabilities"]) == 4
    assert "timings" in server.complete(response_fields=[], **body)
    last = list(server.stream("/completion", body | {"response_fields": ["stop", "index"]}))[-1]
    assert last == {"index": 0, "stop": True} or last == {"stop": True, "index": 0}
    for wrong in (5, [5], {}, ["x"] * 65):
        answer = server.post("/completion", body | {"response_fields": wrong})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("response_fields")


@pytest.mark.parametrize("path", ROUTES)
def test_progress_of_a_prompt(start: Callable[..., Server], path: str) -> None:
    server = start("-c", "2048", "-np", "2", "-b", "64", "-ub", "64")
    body = asked(path, "word " * 500, n_predict=2, return_progress=True, cache_prompt=False)
    events = [event for event in server.stream(path, body) if event != "[DONE]"]
    seen = [event["prompt_progress"] for event in events if "prompt_progress" in event]
    (total,) = {one["total"] for one in seen}
    assert total > 500
    processed = [one["processed"] for one in seen]
    assert processed == sorted(set(processed)) and processed[-1] == total
    assert len(seen) > 2
    assert all(one["cache"] == 0 and one["time_ms"] >= 0 for one in seen)
    first_text = next(i for i, text in enumerate(pieces(path, events)) if text)
    assert all("prompt_progress" not in event for event in events[first_text:])
    # What is taken from cells counts as processed.
    again = [event for event in server.stream(path, body | {"cache_prompt": True})
             if event != "[DONE]"]
    (one,) = [event["prompt_progress"] for event in again if "prompt_progress" in event]
    assert (one["total"], one["processed"]) == (total, total)
    assert 0 < one["cache"] < total
    quiet = [event for event in server.stream(path, body | {"return_progress": False})
             if event != "[DONE]"]
    assert not any("prompt_progress" in event for event in quiet)


@pytest.mark.parametrize("path", ROUTES)
def test_timings_of_every_token(server: Server, path: str) -> None:
    body = asked(path, "1, 2, 3,", n_predict=6, timings_per_token=True, ignore_eos=True)
    events = [event for event in server.stream(path, body) if event != "[DONE]"]
    timed = [event["timings"] for event, text in zip(events, pieces(path, events), strict=True)
             if text]
    counts = [one["predicted_n"] for one in timed]
    assert counts == sorted(set(counts)) and counts[-1] == 6
    last = events[-1]["timings"]
    for one in timed:
        assert list(one) == list(last)
        assert one["prompt_n"] + one["cache_n"] == last["prompt_n"] + last["cache_n"]
        assert one["prompt_ms"] == last["prompt_ms"]
    plain = [event for event in server.stream(path, body | {"timings_per_token": False})
             if event != "[DONE]"]
    assert not any("timings" in event for event in plain[:-1])


def test_a_limit_of_time_ends_at_a_line(server: Server) -> None:
    grammar = 'root ::= ("12345678901234567890" "\\n")+'
    body = {"prompt": "x", "n_predict": 1500, "grammar": grammar, "t_max_predict_ms": 1}
    reply = server.complete(**body)
    assert reply["stop_type"] == "limit" and reply["tokens_predicted"] < 1500
    assert reply["content"].endswith("\n") and not reply["truncated"]
    assert reply["generation_settings"]["t_max_predict_ms"] == 1
    one_line = server.complete(prompt="x", n_predict=50, grammar='root ::= "a"+',
                               t_max_predict_ms=1)
    assert one_line["tokens_predicted"] == 50, "without a line nothing ends early"


def test_tokens_in_streams_and_replies(server: Server) -> None:
    body = {"prompt": "Count", "n_predict": 9, "return_tokens": True, "ignore_eos": True, "seed": 3}
    whole = server.complete(**body)["tokens"]
    assert len(whole) == 9
    events = list(server.stream("/completion", body))
    assert [token for event in events for token in event["tokens"]] == whole
    assert server.complete(**body | {"return_tokens": None})["tokens"] == []


def test_a_busy_slot_is_waited_for(server: Server) -> None:
    with raw_post(server, "/completion", {"prompt": "x", "n_predict": 400, "ignore_eos": True,
                                          "id_slot": 3}):
        wait_until(lambda: server.slots()[3]["is_processing"], "slot 3 to be busy")
        assert server.complete(prompt="y", n_predict=2, id_slot=3)["id_slot"] == 3
        assert server.complete(prompt="y", n_predict=2, id_slot=-1)["id_slot"] >= 0
    for wrong in (8, 2**31 - 1, -2, "x", 1.5, [0]):
        answer = server.post("/completion", {"prompt": "x", "id_slot": wrong})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("id_slot: ")


def first_token(server: Server, text: str) -> int:
    return server.post("/tokenize", {"content": text}).json()["tokens"][0]


def test_every_shape_of_a_bias(server: Server) -> None:
    greedy = {"prompt": "1, 2, 3,", "n_predict": 1, "temperature": 0, "return_tokens": True}
    usual = server.complete(**greedy)["tokens"][0]
    other = first_token(server, " the")
    banned = [{str(usual): False}, {str(usual): -100.0}, [[usual, False]], [[usual, -1e9]],
              [[server.post("/detokenize", {"tokens": [usual]}).json()["content"], False]]]
    for bias in banned:
        assert server.complete(logit_bias=bias, **greedy)["tokens"] != [usual], bias
    for bias in ({str(other): 100}, {" the": 100}, [[other, 100]], [[" the", 100.0]]):
        assert server.complete(logit_bias=bias, **greedy)["tokens"] == [other], bias
    for nothing in ({}, [], None):
        assert server.complete(logit_bias=nothing, **greedy)["tokens"] == [usual]
    settings = server.complete(logit_bias={"5": False}, **greedy)["generation_settings"]
    (shown,) = settings["logit_bias"]
    assert shown["token"] == 5 and shown["bias"] < -1e6
    for wrong in (5, "x", [5], [[1]], [[1, 2, 3]], [[1.5, 1]], [[None, 1]], {"1": True},
                  {"1": "x"}, {"1": None}, [[-1, 1]], {"999999": 1}, [[2**64, 1]]):
        answer = server.post("/completion", greedy | {"logit_bias": wrong})
        assert answer.status_code == 400, wrong
        assert answer.json()["error"]["message"].startswith("logit_bias")


SAMPLERS: list[dict[str, Any]] = [
    {"min_keep": 5}, {"dynatemp_range": 0.5, "dynatemp_exponent": 2}, {"top_n_sigma": 1},
    {"xtc_probability": 0.5, "xtc_threshold": 0.2}, {"typical_p": 0.7},
    {"repeat_penalty": 1.2, "repeat_last_n": -1}, {"dry_multiplier": 0.8, "dry_base": 2,
     "dry_allowed_length": 1, "dry_penalty_last_n": -1, "dry_sequence_breakers": ["\n", "x"]},
    {"mirostat": 1, "mirostat_tau": 3, "mirostat_eta": 0.2}, {"mirostat": 2},
    {"samplers": ["adaptive_p"], "adaptive_target": 0.3, "adaptive_decay": 0.5},
    {"samplers": ["top_k", "infill"], "top_k": 20}, {"samplers": ["top_k", "temperature"]},
    {"samplers": []}, {"samplers": "edskypmxt"}, {"samplers": "ki", "top_k": 20},
    {"n_keep": -1}, {"n_keep": 10}, {"n_discard": -5}, {"n_cache_reuse": 0}]


@pytest.mark.parametrize("body", SAMPLERS, ids=lambda body: str(body)[:40])
@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_every_sampler_is_served(server: Server, path: str, body: dict[str, Any]) -> None:
    answer = server.post(path, {"prompt": "Once", "n_predict": 8, "ignore_eos": True} | body)
    assert answer.status_code == 200, answer.text
    if path == "/completion":
        settings = answer.json()["generation_settings"]
        for name, value in body.items():
            if name in ("samplers", "n_cache_reuse"):
                continue
            if name == "n_discard":
                assert settings[name] == 0, "below nothing is nothing"
            elif isinstance(value, (int, float)) and value >= 0:
                assert settings[name] == pytest.approx(value), name


def test_samplers_as_letters_are_samplers(server: Server) -> None:
    body = {"prompt": "Once", "n_predict": 1}
    listed = server.complete(samplers=["top_k", "min_p", "temperature"], **body)
    short = server.complete(samplers="kmt", **body)
    assert short["generation_settings"]["samplers"] == \
        listed["generation_settings"]["samplers"] == ["top_k", "min_p", "temperature"]
    for wrong in ("kq", ["k"], [5], 5, {"k": 1}):
        answer = server.post("/completion", body | {"samplers": wrong})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("samplers")


PAIRS: list[tuple[dict[str, Any], int]] = [
    ({"temperature": 1e9, "top_k": 2**31 - 1, "top_p": 1, "min_p": 0}, 200),
    ({"temperature": 1e-45, "repeat_penalty": 100, "repeat_last_n": 10**9}, 200),
    ({"presence_penalty": 100, "frequency_penalty": -100, "repeat_last_n": -1}, 200),
    ({"mirostat": 2, "temperature": -1}, 200),
    ({"n_probs": 1000, "post_sampling_probs": True}, 200),
    ({"min_p": 1, "top_p": 0}, 200), ({"top_k": -1, "typical_p": 0}, 200),
    ({"dry_multiplier": 100, "dry_base": 100, "dry_penalty_last_n": 10**9}, 200),
    ({"temperature": -1, "top_p": 2}, 400), ({"repeat_penalty": 0, "temperature": 0}, 400),
    ({"frequency_penalty": 1e30, "presence_penalty": 1}, 400),
    ({"mirostat": 2, "mirostat_tau": -1}, 400), ({"n_probs": 10**9, "min_keep": 3}, 400),
    ({"seed": 2**64, "top_k": 1}, 400), ({"dry_multiplier": 1e9}, 400), ({"min_keep": -1}, 400)]


@pytest.mark.parametrize(("body", "status"), PAIRS, ids=lambda value: str(value)[:40])
def test_wild_values_in_pairs(server: Server, body: dict[str, Any], status: int) -> None:
    # G1: extreme numbers together crashed or hung the server, or put NaN into its JSON.
    answer = server.post("/completion", {"prompt": "Once", "n_predict": 6} | body)
    assert answer.status_code == status, answer.text
    json.loads(answer.text, parse_constant=lambda name: pytest.fail(name))


RAW: list[tuple[bytes, int]] = [
    (b'{"prompt": "x", "n_predict": 1, "temperature": NaN}', 400),
    (b'{"prompt": "x", "n_predict": 1, "temperature": Infinity}', 400),
    (b'{"prompt": "x", "n_predict": 1, "temperature": -Infinity}', 400),
    (b'{"prompt": "x", "n_predict": 1, "temperature": 1e400}', 400),
    (b'{"prompt": "x", "n_predict": 99999999999999999999999999}', 400),
    (b'{"prompt": "x", "n_predict": 1, "seed": 99999999999999999999999999}', 400),
    (b'{"prompt": [18446744073709551617], "n_predict": 1}', 400),
    (b'{"prompt": "x", "n_predict": 1, "unknown": 99999999999999999999999999}', 200),
    (b'{"prompt": "x\\ud83d", "n_predict": 1}', 400),
    (b'{"prompt": "x", "stop": ["\\ude00"], "n_predict": 1}', 400),
    (b'{"prompt": "x", "grammar": "\\ud83d", "n_predict": 1}', 400),
    (b'{"prompt": "x", "stop": "\xff\xfe", "n_predict": 1}', 400),
    (b'{"prompt": "\xed\xa0\x80", "n_predict": 1}', 400), (b'{"prompt": "\xc0\x80"}', 400),
    (b'{"prompt": "a\\u0000b", "stop": ["\\u0000"], "n_predict": 1}', 200),
    (b'\xef\xbb\xbf{"prompt": "x", "n_predict": 1}', 200), (b'\xff\xfe{\x00}\x00', 400),
    (b'{"prompt": "x", "n_predict": 1, "unknown": ' + b"[" * 200 + b"]" * 200 + b"}", 400),
    (b'{"prompt": "x", "n_predict": 1, "unknown": ' + b"[" * 100 + b"]" * 100 + b"}", 200),
    (b'{"prompt": "x", "n_predict": 1,}', 400), (b'{"prompt": "x\ny", "n_predict": 1}', 400)]


@pytest.mark.parametrize(("raw", "status"), RAW, ids=lambda value: str(value)[:60])
@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_raw_bodies(server: Server, path: str, raw: bytes, status: int) -> None:
    # F3, G1: a body in another encoding, or a number beyond all, was an error of the server.
    answer = requests.post(server.url + path, data=raw, timeout=PATIENCE_S)
    assert answer.status_code == status, answer.text
    if status == 400:
        message = answer.json()["error"]["message"]
        for inside in ("json.exception", "nlohmann", "parse_error", "last read"):
            assert inside not in message


def test_a_json_mistake_is_shown_by_line_and_column(server: Server) -> None:
    def message(raw: bytes) -> str:
        answer = requests.post(server.url + "/completion", data=raw, timeout=PATIENCE_S)
        assert answer.status_code == 400
        return answer.json()["error"]["message"]

    assert message(b'{\n  "prompt": x\n}').startswith(
        "the body is not valid JSON at line 2, column 13: ")
    assert "it ends too early" in message(b'{"prompt": "x"')
    assert "a number is too large" in message(b'{"prompt": 1e999}')
    assert "surrogate" in message(b'{"prompt": "\\ud83d"}')
    assert "UTF-8" in message(b'{"prompt": "\xff"}')


FORCED = ["é", "日本語のテキスト。漢字", "🎼", "👨‍👩‍👧‍👦", "a é 日 🎼 b"]


@pytest.mark.parametrize("text", FORCED)
@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("n_probs", [0, 5])
def test_whole_characters_on_all_routes(server: Server, path: str, text: str, n_probs: int) -> None:
    # F1: with probabilities on, or on one route only, a character became U+FFFD.
    body = asked(path, "x", grammar=force(text), n_probs=n_probs)
    assert text_of(path, server.post(path, body).json()) == text
    shown = pieces(path, list(server.stream(path, body)))
    assert "".join(shown) == text
    assert not any("\ufffd" in piece for piece in shown)


STOPS = [(["\n"], "The sky is blue?"), (["?\n"], "The sky is blue"), (["blue"], "The sky is "),
         (["e?\nN"], "The sky is blu"), (["zzz"], SKY), (["Next and more"], SKY), (["T"], ""),
         (["", "is"], "The sky "), (["sky is", "sky", "ky", "is blue", "y i"], "The "),
         (["🎼"], SKY), (None, SKY), ("blue", "The sky is ")]


@pytest.mark.parametrize(("stop", "text"), STOPS, ids=str)
@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("n_probs", [0, 2])
def test_stop_words_on_all_routes(server: Server, path: str, stop: Any, text: str,
                                  n_probs: int) -> None:
    # F4: the OpenAI route leaked a part of the stop word, or lost the text before it.
    body = asked(path, "x", grammar=force(SKY), stop=stop, n_probs=n_probs)
    assert text_of(path, server.post(path, body).json()) == text
    assert "".join(pieces(path, list(server.stream(path, body)))) == text


def test_a_stop_word_of_several_tokens_a_character(server: Server) -> None:
    # F4: a stop word whose character took several tokens was missed.
    for path in ROUTES:
        body = asked(path, "x", grammar=force("one 🎼 two"), stop=["🎼"])
        assert text_of(path, server.post(path, body).json()) == "one "
        assert "".join(pieces(path, list(server.stream(path, body)))) == "one "


def test_tokenizing_follows_its_flags(server: Server) -> None:
    # F5: parse_special false made special tokens all the same; a count differed from the prompt's.
    def tokens(content: Any, **flags: Any) -> list[int]:
        return server.post("/tokenize", {"content": content} | flags).json()["tokens"]

    for text in ("<|im_start|>", "<|endoftext|>"):
        for add_special in (False, True):
            assert len(tokens(text, parse_special=True, add_special=add_special)) == 1
            assert len(tokens(text, parse_special=False, add_special=add_special)) > 1
    assert tokens(["Hello ", "<|im_start|>"], parse_special=False) == \
        tokens("Hello ") + tokens("<|im_start|>", parse_special=False)
    assert tokens(["a", 5, "b"]) == [*tokens("a"), 5, *tokens("b")]
    long = "Grüße, 世界! " * 8000
    for text in ("Hello:World", " x", "\n\n", "🎼", "", long):
        ids = tokens(text)
        assert server.post("/detokenize", {"tokens": ids}).json()["content"] == text
        if 0 < len(ids) < 4096:
            reply = server.post("/v1/completions", {"prompt": text, "max_tokens": 1}).json()
            assert reply["usage"]["prompt_tokens"] == len(tokens(text, add_special=True))
    rendered = server.post("/apply-template", {"messages": turns("Hi")}).json()["prompt"]
    chat = server.chat("Hi", max_tokens=1)
    assert chat["usage"]["prompt_tokens"] == len(tokens(rendered, add_special=True))


NUL = "ab\0cd"


def test_nul_is_a_byte_like_others(server: Server) -> None:
    # F3: what came after a NUL was dropped without a word.
    for path in ROUTES:
        def count(text: str, path: str = path) -> int:
            body = asked(path, text, n_predict=1)
            if path == "/completion":
                return server.post(path, body).json()["tokens_evaluated"]
            return server.post(path, body).json()["usage"]["prompt_tokens"]

        assert count(NUL) > count("ab")
    nul = first_token(server, "\0")
    biased = {"prompt": "x", "n_predict": 3, "temperature": 0, "logit_bias": [[nul, 99]]}
    assert server.complete(**biased)["content"] == "\0\0\0"
    reply = server.complete(stop=["\0"], **biased)
    assert (reply["content"], reply["stopping_word"]) == ("", "\0")


def test_a_huge_prompt_does_not_hold_up_others(server: Server) -> None:
    # G5: a body of 5 MB stalled everybody, or half of it was silently thrown away.
    huge = "word " * 1_000_000
    for path in ROUTES:
        with raw_post(server, path, asked(path, huge, stream=True)) as sock:
            reply = server.complete(prompt="1, 2, 3,", n_predict=3)
            assert reply["tokens_predicted"] == 3
            answer = sock.makefile("rb").readline()
            assert b" 400 " in answer


NATIVE = ["n_predict", "max_tokens", "max_completion_tokens", "n_indent", "n_keep", "n_discard",
          "n_cmpl", "n", "n_cache_reuse", "stream", "stop", "temperature", "dynatemp_range",
          "dynatemp_exponent", "top_k", "top_p", "min_p", "top_n_sigma", "typical_p",
          "repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty",
          "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n",
          "dry_sequence_breakers", "xtc_probability", "xtc_threshold", "mirostat", "mirostat_tau",
          "mirostat_eta", "grammar", "json_schema", "seed", "ignore_eos", "logit_bias", "n_probs",
          "min_keep", "t_max_predict_ms", "id_slot", "cache_prompt", "return_tokens", "samplers",
          "timings_per_token", "return_progress", "sse_ping_interval", "post_sampling_probs",
          "response_fields", "lora", "adaptive_target", "adaptive_decay", "priority", "logprobs",
          "echo", "best_of", "suffix", "user", "response_format", "stream_options"]


@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_null_means_default_in_completions(server: Server, path: str) -> None:
    # G6: a field that was null was an error.
    for name in NATIVE:
        limit = {"max_tokens": 2} if name != "max_tokens" else {"n_predict": 2}
        answer = server.post(path, {"prompt": "x", "unknown": [1]} | limit | {name: None})
        assert answer.status_code == 200, (name, answer.text)


@pytest.mark.parametrize("name", NATIVE)
def test_a_wrong_type_names_its_field(server: Server, name: str) -> None:
    # G1: a wrong type was ignored, or an error of the server.
    if name == "user":
        return  # Anybody's business.
    for path in ("/completion", "/v1/completions"):
        if name == "stream_options" and path == "/completion":
            continue  # OpenAI's own.
        if name == "return_tokens" and path == "/v1/completions":
            continue  # llama-server's own.
        if name == "response_fields" and path == "/v1/completions":
            continue
        for wrong in ({"a": {"b": 1}}, [[["x"]]]):
            answer = server.post(path, {"prompt": "x", "n_predict": 1} | {name: wrong})
            of_its_type = {"json_schema": dict, "stream_options": dict, "lora": list}
            if isinstance(wrong, of_its_type.get(name, ())):
                continue
            assert answer.status_code == 400, (name, wrong, answer.text)
            assert answer.json()["error"]["message"].startswith(name), answer.text


@pytest.mark.parametrize("names", [{"max_tokens": 5}, {"max_completion_tokens": 5},
                                   {"n_predict": 5}, {"max_tokens": 900, "n_predict": 5}])
def test_the_names_of_a_length(server: Server, names: dict[str, int]) -> None:
    # G6: one of the names was ignored; the routes differed in why a reply ended.
    body = {"prompt": "Once", "ignore_eos": True} | names
    native = server.complete(**body)
    openai = server.post("/v1/completions", body).json()
    assert native["tokens_predicted"] == openai["usage"]["completion_tokens"] == 5
    assert (native["stop_type"], openai["choices"][0]["finish_reason"]) == ("limit", "length")


@pytest.mark.parametrize(("field", "status", "words"), [
    ({"echo": True}, 501, "echo"), ({"echo": 1}, 400, "echo"), ({"best_of": 2}, 501, "best_of"),
    ({"best_of": 0}, 400, "best_of"), ({"suffix": "x"}, 501, "suffix"),
    ({"suffix": 5}, 400, "suffix"), ({"n_cache_reuse": 256}, 501, "n_cache_reuse"),
    ({"n_cache_reuse": -1}, 400, "n_cache_reuse"), ({"lora": [{"id": 0}]}, 501, "lora"),
    ({"stream_options": {"include_usage": "yes"}}, 400, "stream_options.include_usage: "),
    ({"stream_options": []}, 400, "stream_options: "), ({"logprobs": "x"}, 400, "logprobs"),
    ({"n_keep": -2}, 400, "n_keep"), ({"n_keep": "x"}, 400, "n_keep"),
    ({"n_discard": 1.5}, 400, "n_discard"), ({"n_indent": 2**40}, 400, "n_indent"),
    ({"grammar": "root ::= \"a\"", "json_schema": {}}, 400, "json_schema"),
    ({"response_format": {"type": "xml"}}, 400, "response_format.type"),
    ({"response_format": {}}, 400, "response_format.type"),
    ({"response_format": {"type": 5}}, 400, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, 400, "response_format.json_schema"),
    ({"response_format": {"type": "json_object", "schema": 5}}, 400, "response_format"),
    ({"response_format": {"type": "json_object"}, "grammar": "root ::= \"a\""}, 400,
     "response_format")])
def test_what_is_not_built_or_wrong_is_told(server: Server, field: dict[str, Any], status: int,
                                            words: str) -> None:
    answer = server.post("/v1/completions", {"prompt": "x", "max_tokens": 1} | field)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"].startswith(words)


def test_schemas_in_completions(server: Server) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1,
                                                     "maximum": 9}}, "required": ["n"]}
    for field in ({"json_schema": schema},
                  {"response_format": {"type": "json_object", "schema": schema}},
                  {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}):
        body = {"prompt": "x", "n_predict": 200} | field
        for text in (server.complete(**body)["content"],
                     server.post("/v1/completions", body).json()["choices"][0]["text"]):
            assert 1 <= json.loads(text)["n"] <= 9
    anything = server.complete(prompt="x", n_predict=300, response_format={"type": "json_object"},
                               temperature=0, logit_bias={"}": 10})
    assert anything["content"].lstrip().startswith("{")


def test_default_grammars_and_stop_words(start: Callable[..., Server], tmp_path: Path) -> None:
    grammar = tmp_path / "letters.gbnf"
    grammar.write_text('root ::= "abc\\n" "def"')
    server = start("-c", "512", "-np", "1", "--grammar-file", str(grammar), "-r", "\\n", "-r", "zz")
    body = {"prompt": "x", "n_predict": 20}
    assert server.complete(**body)["content"] == "abc"
    assert server.complete(**body)["stopping_word"] == "\n"
    assert server.complete(stop=[], **body)["content"] == "abc\ndef"
    assert server.complete(grammar=force("own"), **body)["content"] == "own"
    assert server.complete(json_schema={"const": 5}, **body)["content"] == "5"
    assert server.chat("x", max_tokens=20)["choices"][0]["message"]["content"] == "abc"
    schema = tmp_path / "schema.json"
    schema.write_text('{"const": "s"}')
    for flags in (("-j", '{"const": "s"}'), ("-jf", str(schema))):
        assert start("-c", "512", *flags).complete(**body)["content"] == '"s"'


def test_default_bias_and_special_tokens(start: Callable[..., Server]) -> None:
    server = start("-c", "512", "--no-escape", "-r", "\\n", "-l", "5-inf", "--logit-bias", "300+99",
                   "--special", "--perf", "--spm-infill", "-cb")
    body = {"prompt": "x", "n_predict": 3, "temperature": 0, "return_tokens": True}
    reply = server.complete(**body)
    assert reply["tokens"] == [300] * 3
    assert reply["generation_settings"]["stop"] == ["\\n"]
    assert len(reply["generation_settings"]["logit_bias"]) == 2
    start_mark = first_token(server, "<|im_start|>")
    shown = server.complete(logit_bias=[[start_mark, 99]], n_probs=1, **body)
    assert shown["content"] == "<|im_start|>" * 3
    assert shown["completion_probabilities"][0]["token"] == "<|im_start|>"
    plain = start("-c", "512")
    assert plain.complete(logit_bias=[[start_mark, 99]], **body)["content"] == ""


@pytest.mark.parametrize(("flags", "words"), [
    (["--grammar", "root ::= ("], "--grammar: "), (["-j", "{"], "--json-schema: "),
    (["--grammar-file", "/no/such/file"], "--grammar-file: cannot read"),
    (["--json-schema-file", "/no/such/file"], "--json-schema-file: cannot read"),
    (["-l", "999999+1"], "logit_bias"), (["-l", "5"], "--logit-bias"),
    (["-l", "5*2"], "--logit-bias"), (["-l", "5+inf"], "--logit-bias"),
    (["--grammar", "root ::= \"a\"", "-j", "{}"], "exclude each other"),
    (["--no-cont-batching"], "--no-cont-batching")])
def test_bad_defaults_end_the_start_in_one_line(start: Callable[..., Server], flags: list[str],
                                                words: str) -> None:
    with pytest.raises(RuntimeError, match="did not start") as failure:
        start(*flags)
    assert words in str(failure.value)


def test_a_grammar_of_one_token_has_probabilities_too(server: Server) -> None:
    # I3: impossible tokens had minus infinity, which is no JSON; one route gave null.
    for path, field in (("/completion", {"n_probs": 5}), ("/v1/completions", {"logprobs": 5}),
                        ("/v1/chat/completions", {"logprobs": True, "top_logprobs": 5})):
        body = asked(path, "x", grammar=force(" é 🎼 b"), temperature=0, cache_prompt=False, **field)

        def entries(reply: dict[str, Any], path: str = path) -> list[Any]:
            if path == "/completion":
                return reply.get("completion_probabilities", [])
            return [entry for choice in reply["choices"] if choice.get("logprobs")
                    for entry in choice["logprobs"]["content"]]

        answer = server.post(path, body)
        json.loads(answer.text, parse_constant=lambda name: pytest.fail(name))
        whole = entries(answer.json())
        assert b"".join(bytes(entry["bytes"]) for entry in whole).decode() == " é 🎼 b"
        events = [event for event in server.stream(path, body) if event != "[DONE]"]
        assert [entry for event in events for entry in entries(event)] == whole
        for entry in whole:
            assert len(entry["top_logprobs"]) == 5
    after = server.complete(prompt="x", grammar=force("ab"), n_predict=9, n_probs=5,
                            post_sampling_probs=True)["completion_probabilities"]
    assert all(0 <= one["prob"] <= 1 for entry in after for one in entry["top_probs"])


def test_the_count_of_alternatives(server: Server) -> None:
    # I3: 0 alternatives, or a million.
    for path, name in (("/completion", "n_probs"), ("/v1/completions", "logprobs")):
        assert server.post(path, asked(path, "x", n_predict=1, **{name: 0})).status_code == 200
        for wrong in (10**6, -1, "x", [1]):
            answer = server.post(path, asked(path, "x", n_predict=1, **{name: wrong}))
            assert answer.status_code == 400
            assert answer.json()["error"]["message"].startswith(name)
    chat = ROUTES[2]
    for top, status in ((0, 200), (20, 200), (10**6, 400), ("5", 400), ([], 400), (1.5, 400)):
        answer = server.post(chat, asked(chat, "x", n_predict=2, logprobs=True, top_logprobs=top))
        assert answer.status_code == status, answer.text
        if status == 400:
            assert answer.json()["error"]["message"].startswith("top_logprobs")
        else:
            content = answer.json()["choices"][0]["logprobs"]["content"]
            assert all(len(entry["top_logprobs"]) == top for entry in content)


def test_counting_on_all_routes_is_right(server: Server) -> None:
    for path in ROUTES[1:]:
        text = text_of(path, server.post(path, asked(
            path, "Count from 1 to 20.", temperature=0, n_predict=200,
            grammar=force(count_text(1, 20)))).json())
        assert text == count_text(1, 20)
