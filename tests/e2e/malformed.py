"""A table of requests that are wrong, each in one way. No chance in it: the same every time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bad:
    """What is sent, and how the message of the answer begins; "" where no field is to blame."""

    path: str
    body: bytes
    field: str = ""

    def __str__(self) -> str:
        return f"POST {self.path} {self.body[:120]!r}"


def of(path: str, body: Any, field: str) -> Bad:
    return Bad(path, json.dumps(body).encode(), field)


# Wrong for every field of the kind.
WRONG: dict[str, list[Any]] = {
    "integer": ["many", 1.5, [], {"a": 1}, True, 1e300, -(2**63) - 1, 2**64],
    "number": ["hot", [1], {"a": 1}, False, 1e300, -1e300],
    "boolean": [1, "yes", [], {}],
    "text": [5, 1.5, ["a"], {"a": 1}, True],
    "object": [5, "x", [1], True],
    "list": [5, "x", True],
}

PLAIN = {"prompt": "x", "n_predict": 1}
OPENAI = {"prompt": "x", "max_tokens": 1}
HELLO = [{"role": "user", "content": "Hello"}]
CHAT = {"messages": HELLO, "max_tokens": 1}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}

SAMPLING = {
    "temperature": "number", "top_p": "number", "min_p": "number", "top_n_sigma": "number",
    "typical_p": "number", "repeat_penalty": "number", "presence_penalty": "number",
    "frequency_penalty": "number", "dry_multiplier": "number", "dry_base": "number",
    "xtc_probability": "number", "xtc_threshold": "number", "mirostat_tau": "number",
    "mirostat_eta": "number", "dynatemp_range": "number", "top_k": "integer",
    "repeat_last_n": "integer", "mirostat": "integer", "min_keep": "integer", "seed": "integer",
    "dry_allowed_length": "integer", "n": "integer", "stream": "boolean",
    "cache_prompt": "boolean", "ignore_eos": "boolean", "grammar": "text", "json_schema": "object",
    "stream_options": "object", "id_slot": "integer", "priority": "integer",
    "t_max_predict_ms": "integer", "sse_ping_interval": "integer", "lora": "list"}

EMBEDDING = {"embd_normalize": "integer", "dimensions": "integer", "encoding_format": "text",
             "user": "text", "model": "text"}
INPUTS: list[Any] = [5, True, {}, {"a": 1}, [-1], [10**6], [2**63], [1.5], [None], [[1], None],
                     [{"a": 1}], [True], ["x"] * 2049]

FIELDS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("/completion", PLAIN, SAMPLING | {
        "n_predict": "integer", "n_probs": "integer", "return_tokens": "boolean",
        "return_progress": "boolean", "timings_per_token": "boolean"}),
    ("/v1/completions", OPENAI, {
        "max_tokens": "integer", "temperature": "number", "n": "integer", "stream": "boolean",
        "stream_options": "object", "echo": "boolean"}),
    ("/v1/chat/completions", CHAT, {
        "max_tokens": "integer", "max_completion_tokens": "integer", "temperature": "number",
        "top_p": "number", "n": "integer", "stream": "boolean", "logprobs": "boolean",
        "top_logprobs": "integer", "tools": "list", "response_format": "object",
        "chat_template_kwargs": "object", "stream_options": "object", "grammar": "text"}),
    ("/apply-template", {"messages": HELLO}, {
        "messages": "list", "chat_template_kwargs": "object"}),
    ("/tokenize", {"content": "x"}, {
        "add_special": "boolean", "parse_special": "boolean", "with_pieces": "boolean"}),
    ("/detokenize", {"tokens": [1]}, {"tokens": "list"}),
    ("/v1/messages", CHAT, {
        "max_tokens": "integer", "temperature": "number", "top_p": "number", "top_k": "integer",
        "stream": "boolean", "messages": "list", "tools": "list", "tool_choice": "object",
        "stop_sequences": "list"}),
    ("/v1/responses", {"input": "Hello"}, {
        "max_output_tokens": "integer", "temperature": "number", "stream": "boolean",
        "instructions": "text", "tools": "list"}),
    ("/v1/chat/completions/control", {"id": "x", "action": "reasoning_end"}, {
        "id": "text", "action": "text", "model": "text"}),
    ("/v1/embeddings", {"input": "x"}, EMBEDDING), ("/embedding", {"content": "x"}, EMBEDDING),
]

# Values that only their own field refuses.
VALUES: list[tuple[str, dict[str, Any], str, list[Any]]] = [
    ("/completion", PLAIN, "n_predict", [-3, 2**31]),
    ("/completion", PLAIN, "n", [0, -1, 17, 10**6, 2**40]),
    ("/completion", PLAIN, "top_p", [-0.1, 1.1]),
    ("/completion", PLAIN, "repeat_penalty", [0, -1]),
    ("/completion", PLAIN, "repeat_last_n", [-2]),
    ("/completion", PLAIN, "mirostat", [-1, 3]),
    ("/completion", PLAIN, "n_probs", [-1, 1001, 10**9]),
    ("/completion", PLAIN, "id_slot", [99, 2**31]),
    ("/completion", PLAIN, "seed", [-2, 2**32]),
    ("/completion", PLAIN, "stop", [5, [5], {"a": 1}, ["x" * 2000], ["a"] * 1000]),
    ("/completion", PLAIN, "samplers", [["nonsense"], "Z", 5, [5]]),
    ("/completion", PLAIN, "response_fields", [5, True, {"a": 1}, [5], [None]]),
    ("/completion", PLAIN, "logit_bias",
     [{"99999": 1}, [[1]], [[1, "x"]], 5, [5], [[1, 2, 3]], {"1": []}]),
    ("/completion", PLAIN, "grammar", [
        "not a grammar", "root ::= undefined", "root ::= (" * 2000,
        "root ::= " + "(" * 50_000 + '"a"' + ")" * 50_000, "%llguidance {}", "x ::= \"a\"",
        "root ::= [", "root ::= \"\\x\"", "root ::= root"]),
    ("/completion", PLAIN, "json_schema", [
        {"type": 5}, {"type": "nonsense"}, {"$ref": "#/nowhere"},
        {"type": "object", "properties": 5}, {"pattern": 5, "type": "string"}]),
    ("/completion", {"n_predict": 1}, "prompt", [
        None, 5, True, {}, {"a": 1}, [-1], [10**6], [2**63], [1.5], [None], [[1], None],
        [{"a": 1}], [True]]),
    ("/v1/completions", {"max_tokens": 1}, "prompt", [None, 5, {"a": 1}, [-1], [10**6], [1.5]]),
    ("/infill", {"n_predict": 1, "input_suffix": "x"}, "input_prefix", [5, {"a": 1}, [-1]]),
    ("/tokenize", {}, "content", [5, True, {"a": 1}, [-1], [10**6], [None]]),
    ("/detokenize", {}, "tokens", [5, "x", {"a": 1}, [-1], [10**6], ["a"], [1.5], [None], [[1]]]),
    ("/v1/chat/completions/control", {"action": "reasoning_end"}, "id", [None, ""]),
    ("/v1/chat/completions/control", {"id": "x"}, "action", [None, "", "stop"]),
    ("/v1/embeddings", {}, "input", [None, *INPUTS]),
    ("/v1/embeddings", {}, "content", INPUTS),
    ("/embeddings", {}, "input", [None, *INPUTS]),
    ("/embedding", {}, "content", INPUTS),
    ("/v1/embeddings", {"input": "x"}, "encoding_format", ["", "hex", "BASE64"]),
    ("/v1/embeddings", {"input": "x"}, "embd_normalize", [-2, 2**31]),
    ("/v1/embeddings", {"input": "x"}, "dimensions", [0, -1, 2**31]),
    ("/v1/responses", {"max_output_tokens": 1}, "input", [None, 5, True, [5], [{"role": "x"}]]),
]

MESSAGES: list[Any] = [
    None, {}, [], "x", 5, [None], ["x"], [5], [[]], [{}], [{"content": "x"}],
    [{"role": "wizard", "content": "x"}], [{"role": "", "content": "x"}], [{"role": "user"}],
    [{"role": "user", "content": 5}], [{"role": "user", "content": {"a": 1}}],
    [{"role": 5, "content": "x"}], [{"role": None, "content": "x"}],
    [{"role": "user", "content": [5]}], [{"role": "user", "content": [{}]}],
    [{"role": "user", "content": [{"type": "video"}]}],
    [{"role": "user", "content": [{"type": "text"}]}],
    [{"role": "user", "content": [{"type": "text", "text": 5}]}]]

TOOLS: list[Any] = [
    [5], [None], ["x"], [{}], [{"type": "function"}], [{"type": "function", "function": 5}],
    [{"type": "function", "function": {}}], [{"type": "function", "function": {"name": 5}}],
    [{"type": "function", "function": {"name": "f", "parameters": 5}}], [{"type": "nonsense"}]]

FORMATS: list[Any] = [
    {"type": "nonsense"}, {"type": 5}, {"type": "json_schema", "json_schema": 5},
    {"type": "json_schema", "json_schema": {"schema": 5}}, {"type": "json_object", "schema": 5},
    {"type": "json_schema", "json_schema": {"schema": {"type": "nonsense"}}}]

# Not JSON, or no object.
TEXTS: list[bytes] = [
    b"", b" ", b"null", b"5", b'"x"', b"[]", b"[{}]", b"{", b"}", b'{"prompt"', b'{"prompt":}',
    b'{"prompt": "x"', b'{"prompt": "x",}', b"{'prompt': 'x'}", b'{"temperature": NaN}',
    b'{"temperature": Infinity}', b'{"temperature": -Infinity}', b'{"temperature": 1e999}',
    b'{"n_predict": 01}', b'{"n_predict": +1}', b'{"n_predict": 0x10}', b'{"a": "\xff"}',
    b'{"a": "\xc0\xaf"}', b'{"a": "\xed\xa0\x80"}', b'{"a": "\\ud83d"}', b'{"a": "\\ude00x"}',
    b'{"a": "\\x"}', b'{"a": "\x00"}', b'\x00{"prompt": "x"}', b'{"prompt": "x"}\x00',
    b'{"prompt": "x"} {}', b"\xff\xfe{\x00}\x00", b'{"a":' * 50_000,
    b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"prompt": "line\nbreak"}',
    b"prompt=x&n_predict=1", b"<xml/>"]

BODY_PATHS = ["/completion", "/v1/completions", "/v1/chat/completions", "/tokenize",
              "/detokenize", "/apply-template", "/v1/embeddings", "/embedding",
              "/v1/chat/completions/control"]
OTHER_PATHS = ["/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/infill",
               "/v1/rerank", "/lora-adapters", "/props"]


def long_bodies(window: int) -> Iterator[Bad]:
    """Larger than the window, in every way to say it."""
    text, tokens = "word " * (window * 2), [40] * window
    for path in ("/completion", "/v1/completions"):
        for prompt in (text, tokens, [text], ["a", *tokens]):
            yield of(path, {"prompt": prompt, "n_predict": 1}, "request (")
    chat = [{"role": "user", "content": text}]
    yield of("/v1/chat/completions", {"messages": chat, "max_tokens": 1}, "request (")
    yield of("/v1/chat/completions", {"messages": HELLO * window, "max_tokens": 1}, "request (")


def table(window: int) -> list[Bad]:
    out: list[Bad] = []
    for path, base, fields in FIELDS:
        out += [of(path, base | {name: value}, name)
                for name, kind in fields.items() for value in WRONG[kind]]
    for path, base, name, values in VALUES:
        out += [of(path, base | {name: value}, name) for value in values]
    for path in ("/v1/chat/completions", "/apply-template", "/v1/messages"):
        out += [of(path, {"messages": messages, "max_tokens": 1}, "messages")
                for messages in MESSAGES]
    out += [of("/v1/chat/completions", CHAT | {"tools": tools}, "tools") for tools in TOOLS]
    out += [of("/v1/chat/completions", CHAT | {"response_format": value}, "response_format")
            for value in FORMATS]
    out += [of("/v1/chat/completions", CHAT | {"tools": [TOOL], "tool_choice": value},
               "tool_choice") for value in (5, "nonsense", [], {"type": "nonsense"})]
    out += [Bad(path, text) for path in BODY_PATHS for text in TEXTS]
    out += [Bad(path, text) for path in OTHER_PATHS for text in TEXTS[:4]]
    out += list(long_bodies(window))
    return out


# Bytes of whole requests, with the statuses that fit. The last byte comes; nothing follows it.
HEAD = b"POST /completion HTTP/1.1\r\nHost: x\r\n"
BODY = b'{"prompt": "x", "n_predict": 1}'
RAW: list[tuple[bytes, set[int]]] = [
    (b"POST /%zz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /%1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /completion% HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /completion%00 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /%ff%fe HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {404}),
    (b"POST completion HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /../completion HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {404}),
    (b"POST /slots/99?action=park HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /slots/x?action=park HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /slots/0?action=%zz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /slots/0 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400}),
    (b"POST /slots/0?action=park&id_task=x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
     {400, 404}),
    (b"BREW /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {400, 404, 405}),
    (b"PUT /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", {404, 405}),
    (HEAD + b"Content-Length: 2147483648\r\n\r\n", {413}),
    (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n", {400}),
    (HEAD + b"Content-Length: -1\r\n\r\n", {400}),
    (HEAD + b"Content-Length: ten\r\n\r\n", {400}),
    (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", {400}),
    (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", {501}),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", {400}),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", {400}),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", {400, 413}),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n", {413}),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xy\r\n0\r\n\r\n", {400}),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 100_000, {400, 413}),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 100_000, {400}),
    (HEAD + b"X: " + b"y" * 200_000 + b"\r\n\r\n", {431}),
    (HEAD + b"X\r\n\r\n", {400}),
    (HEAD + b"X: a\x00b\r\nContent-Length: 2\r\n\r\n{}", {400}),
    (HEAD + b" folded: x\r\nContent-Length: 2\r\n\r\n{}", {400}),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400}),
    (b"\x00" * 100 + b"\r\n\r\n", {400}),
    (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", {414, 431}),
]
# Complete requests are answered and so are broken ones; these never become either.
SLOW: list[bytes] = [
    b"P", b"POST /completion HTTP/1.1\r\n", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", HEAD + b"X: y"]
