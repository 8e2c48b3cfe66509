"""What a client can get wrong: always a 4xx in the documented shape, and the server lives."""

import socket
from typing import Any

import pytest
import requests

from server import PATIENCE_S, Server

BAD_SAMPLING: list[dict[str, Any]] = [
    {"temperature": "hot"}, {"top_p": -1}, {"top_p": 2}, {"top_k": 2**40}, {"min_p": 5},
    {"repeat_penalty": 0}, {"repeat_penalty": -1}, {"repeat_last_n": -2},
    {"presence_penalty": 1e30},
    {"mirostat": 9}, {"n_probs": -1}, {"n_probs": 10**9}, {"seed": 2**64}, {"seed": "a"},
    {"logit_bias": {"999999": 5}}, {"logit_bias": [[1, "x"]]}, {"samplers": ["nonsense"]},
    {"n_predict": 1.5}, {"n_predict": "many"}, {"stop": [1]}, {"stop": {"a": 1}}, {"id_slot": 99},
    {"stream": "yes"}, {"priority": "high"}, {"grammar": "root ::= ("}, {"json_schema": 5},
    {"t_max_predict_ms": "x"}, {"cache_prompt": 1}, {"top_k": 1e300}]


@pytest.mark.parametrize("body", BAD_SAMPLING, ids=lambda body: str(body)[:40])
def test_bad_values_name_their_field(server: Server, body: dict[str, Any]) -> None:
    # G1: extreme numbers crashed or hung the server.
    answer = server.post("/completion", {"prompt": "x", "n_predict": 1} | body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["code"] == 400 and error["type"] == "invalid_request_error"
    assert next(iter(body)) in error["message"]


FINE_SAMPLING: list[dict[str, Any]] = [
    {"temperature": -1}, {"temperature": 1e9}, {"temperature": 1e-45}, {"top_k": -1},
    {"top_k": 2**31 - 1}, {"repeat_last_n": 10**9, "repeat_penalty": 1.1}, {"seed": -1},
    {"logit_bias": {"1": False}}, {"n_predict": 3.0}, {"typical_p": 0.5, "min_p": 0.9}]


@pytest.mark.parametrize("body", FINE_SAMPLING, ids=lambda body: str(body)[:40])
def test_extreme_values_with_a_meaning_are_served(server: Server, body: dict[str, Any]) -> None:
    answer = server.post("/completion", {"prompt": "x", "n_predict": 3} | body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("prompt", [[-1], [10**6], [1.5], [[1], "a", None], {"a": 1}, 5, True])
def test_bad_prompts(server: Server, prompt: Any) -> None:
    answer = server.post("/completion", {"prompt": prompt, "n_predict": 1})
    assert answer.status_code == 400, answer.text
    assert "prompt" in answer.json()["error"]["message"]


@pytest.mark.parametrize("prompt", ["", [], [""]])
def test_empty_prompts_are_answered(server: Server, prompt: Any) -> None:
    # G4: an empty prompt made the whole server hang. This model has a BOS: that is the prompt then.
    assert server.complete(prompt=prompt, n_predict=1)["tokens_evaluated"] == 1
    assert server.complete(prompt=" ", n_predict=1)["tokens_predicted"] == 1


@pytest.mark.parametrize("raw", [b"[]", b"5", b'"x"', b"null", b"", b'{"prompt": "x"', b"\xff\xfe",
                                 b'{"prompt": "x\xff"}', b'{"prompt": "\\ud83d"}',
                                 b'{"prompt": "\\ude00"}', b'{"prompt": "\xc0\xaf"}',
                                 b'{"prompt":' + b"[" * 100_000, b'{"temperature": 1e999}'])
@pytest.mark.parametrize("path", ["/completion", "/v1/chat/completions", "/tokenize"])
def test_bodies_that_are_no_object(server: Server, raw: bytes, path: str) -> None:
    # J4, F3: client mistakes came back as server errors; some killed the process.
    answer = requests.post(server.url + path, data=raw, timeout=PATIENCE_S)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("messages", [
    None, {}, [], [None], ["x"], [{"content": "x"}], [{"role": "wizard", "content": "x"}],
    [{"role": "user"}], [{"role": "user", "content": 5}], [{"role": 5, "content": "x"}],
    [{"role": "user", "content": [{"type": "video"}]}], [{"role": "user", "content": [5]}]])
def test_bad_messages(server: Server, messages: Any) -> None:
    answer = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})
    assert answer.status_code == 400, answer.text
    assert "messages" in answer.json()["error"]["message"]


@pytest.mark.parametrize("messages", [
    [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    [{"role": "system", "content": "s"}, {"role": "user", "content": ""}]])
def test_odd_but_legal_messages(server: Server, messages: Any) -> None:
    answer = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})
    assert answer.status_code == 200, answer.text


def test_a_byte_order_mark_is_accepted(server: Server) -> None:
    raw = b'\xef\xbb\xbf{"prompt": "x", "n_predict": 1}'
    assert requests.post(server.url + "/completion", data=raw, timeout=PATIENCE_S).ok


def test_nul_counts_like_any_byte(server: Server) -> None:
    # F3: text after a NUL was silently dropped.
    def tokens(text: str) -> list[int]:
        return server.post("/tokenize", {"content": text}).json()["tokens"]

    assert len(tokens("ab\0cd")) > len(tokens("ab"))
    assert server.post("/detokenize", {"tokens": tokens("ab\0cd")}).json()["content"] == "ab\0cd"


def test_prompts_around_the_window(server: Server) -> None:
    # G5: too long prompts were silently cut, or answered with the wrong status.
    window = server.get("/props").json()["default_generation_settings"]["n_ctx"]
    at_most = server.complete(prompt=[40] * (window - 1), n_predict=10, ignore_eos=True)
    assert at_most["tokens_predicted"] == 1
    assert at_most["stop_type"] == "limit" and at_most["truncated"] is True
    below = server.complete(prompt=[40] * (window - 2), n_predict=10, ignore_eos=True)
    assert below["tokens_predicted"] == 2
    for length in (window, window + 1, 10 * window):
        for path in ("/completion", "/v1/completions"):
            for stream in (False, True):
                answer = server.post(path, {"prompt": [40] * length, "stream": stream})
                assert answer.status_code == 400
                error = answer.json()["error"]
                assert error["type"] == "exceed_context_size_error"
                assert (error["n_prompt_tokens"], error["n_ctx"]) == (length, window)
    long_chat = server.post("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "word " * 1_000_000}], "stream": True})
    assert long_chat.status_code == 400
    assert long_chat.json()["error"]["type"] == "exceed_context_size_error"


@pytest.mark.parametrize("grammar", [
    "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000, "%llguidance {}\nstart: \"a\"",
    "root ::= undefined", "not a grammar"])
def test_hostile_grammars(server: Server, grammar: str) -> None:
    # J2: a deep grammar overflowed the stack and ended the process.
    answer = server.post("/completion", {"prompt": "x", "n_predict": 3, "grammar": grammar})
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize(("path", "status"), [
    ("/nonsense", 404), ("/v1/nonsense", 404), ("/", 404), ("/v1/embeddings", 501),
    ("/infill", 501), ("/v1/messages", 400), ("/health/", 404), ("//v1/models", 404)])
def test_unknown_and_missing_routes(server: Server, path: str, status: int) -> None:
    answer = server.post(path, {})
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == status


def test_unsupported_fields_are_told(server: Server) -> None:
    for field in ({"functions": [{"name": "f"}]}, {"lora": [{"id": 0}]},
                  {"modalities": ["audio"]}):
        body = {"messages": [{"role": "user", "content": "x"}]} | field
        answer = server.post("/v1/chat/completions", body)
        assert answer.status_code == 501, answer.text
        assert next(iter(field)) in answer.json()["error"]["message"]


@pytest.mark.parametrize(("field", "status"), [
    ({"n": 0}, 400), ({"n": []}, 400), ({"best_of": 2}, 501), ({"best_of": "x"}, 400),
    ({"timings_per_token": {}}, 400), ({"n_cache_reuse": 64}, 501),
    ({"return_progress": []}, 400), ({"n_cmpl": {}}, 400), ({"grammar_lazy": True}, 501),
    ({"grammar_triggers": [1]}, 501), ({"preserved_tokens": "x"}, 400), ({"lora": {}}, 400),
    ({"response_format": {}}, 400), ({"response_format": 5}, 400)])
def test_an_unsupported_field_of_any_value_is_told(server: Server, field: dict[str, object],
                                                   status: int) -> None:
    """Empty lists and objects of a wrong type counted as absent, and others were ignored."""
    answer = server.post("/completion", {"prompt": "x", "n_predict": 1} | field)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"].startswith(next(iter(field)))


def test_unsupported_fields_may_say_that_nothing_is_wanted(server: Server) -> None:
    server.complete(prompt="x", n_predict=1, n=1, n_probs=0, timings_per_token=False, lora=[],
                    response_format={"type": "text"}, grammar_triggers=[], best_of=1)
    server.chat("x", max_tokens=1, tools=[], logprobs=False, top_logprobs=0, n=1)


def test_errors_name_the_field_that_was_sent(server: Server) -> None:
    """/tokenize spoke of a prompt, and a schema's error of a grammar."""
    answer = server.post("/tokenize", {"content": 7})
    assert answer.json()["error"]["message"].startswith("content: ")
    for length in (10**9, 10**12):
        schema = {"type": "string", "minLength": length}
        answer = server.post("/completion", {"prompt": "x", "json_schema": schema})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("json_schema: ")


def test_a_two_gigabyte_body_is_refused_at_its_header(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as sock:
        sock.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 2147483648\r\n\r\n")
        assert b"413" in sock.recv(100)
