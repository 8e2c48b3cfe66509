"""Texts as vectors, in the shapes of OpenAI and of llama-server."""

import base64
import contextlib
import math
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from server import Server, raw_post, reset, wait_until
from test_info import parse_metrics

SEVERAL = ["Count from 1 to 9.", "Tell me a story.", "x", "Once there was a fox who sang. " * 4]


@pytest.fixture(scope="module", params=["mean", "last", "cls"])
def pooled(request: pytest.FixtureRequest) -> Iterator[Server]:
    one = Server("-c", "1024", "-np", "2", "--embeddings", "--pooling", request.param, "--metrics")
    yield one
    assert one.stop() == 0, "".join(one.errors)


@pytest.fixture
def mean(start: Callable[..., Server]) -> Server:
    return start("-c", "512", "-np", "2", "--embedding", "--pooling", "mean", "--metrics")


def vectors(server: Server, texts: Any, **body: Any) -> list[list[float]]:
    answer = server.post("/v1/embeddings", {"input": texts} | body)
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert [entry["index"] for entry in data] == list(range(len(data)))
    return [entry["embedding"] for entry in data]


def norm(vector: list[float]) -> float:
    return math.sqrt(sum(x * x for x in vector))


def alike(a: list[float], b: list[float]) -> bool:
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) < 1e-3


def test_the_shape_of_openai(pooled: Server) -> None:
    answer = pooled.post("/v1/embeddings", {"input": SEVERAL, "model": "any"}).json()
    assert set(answer) == {"model", "object", "usage", "data"}
    assert answer["object"] == "list" and answer["model"] == "any"
    tokens = sum(len(pooled.post("/tokenize", {"content": text, "add_special": True}).json()
                     ["tokens"]) for text in SEVERAL)
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    width = pooled.get("/v1/models").json()["data"][0]["meta"]["n_embd"]
    for entry in answer["data"]:
        assert entry["object"] == "embedding" and len(entry["embedding"]) == width


def test_equal_texts_have_equal_vectors_of_length_one(pooled: Server) -> None:
    once = vectors(pooled, SEVERAL)
    assert vectors(pooled, SEVERAL) == once
    for vector in once:
        assert norm(vector) == pytest.approx(1, abs=1e-4)
    assert not alike(once[0], once[1]) and not alike(once[1], once[2])
    alone = [vectors(pooled, text)[0] for text in SEVERAL]
    assert all(alike(a, b) for a, b in zip(alone, once, strict=True))
    assert vectors(pooled, SEVERAL[0]) == vectors(pooled, [SEVERAL[0]])


def test_every_way_to_write_texts(pooled: Server) -> None:
    tokens = [pooled.post("/tokenize", {"content": text, "add_special": True}).json()["tokens"]
              for text in SEVERAL]
    want = vectors(pooled, SEVERAL)
    for given in (tokens, [SEVERAL[0], tokens[1], {"prompt_string": SEVERAL[2]}, tokens[3]]):
        assert all(alike(a, b) for a, b in zip(vectors(pooled, given), want, strict=True))
    assert alike(vectors(pooled, tokens[1])[0], want[1])
    assert len(vectors(pooled, "")) == 1, "a text with the first token of the vocabulary only"


def test_base64_has_the_same_numbers(pooled: Server) -> None:
    answer = pooled.post("/v1/embeddings", {"input": SEVERAL, "encoding_format": "base64"}).json()
    for entry, vector in zip(answer["data"], vectors(pooled, SEVERAL), strict=True):
        assert entry["encoding_format"] == "base64"
        raw = base64.b64decode(entry["embedding"], validate=True)
        numbers = struct.unpack(f"<{len(raw) // 4}f", raw)
        assert list(numbers) == [struct.unpack("<f", struct.pack("<f", x))[0] for x in vector]


@pytest.mark.parametrize("path", ["/embedding", "/embeddings"])
def test_the_shape_of_llama_server(pooled: Server, path: str) -> None:
    want = vectors(pooled, SEVERAL)
    for field in ("content", "input"):
        answer = pooled.post(path, {field: SEVERAL}).json()
        assert [entry["index"] for entry in answer] == [0, 1, 2, 3]
        assert all(alike(entry["embedding"][0], vector) and len(entry["embedding"]) == 1
                   for entry, vector in zip(answer, want, strict=True))
    one = pooled.post(path, {"content": SEVERAL[0]}).json()
    assert len(one) == 1 and alike(one[0]["embedding"][0], want[0])
    assert pooled.post("/v1/embeddings", {"content": SEVERAL[0]}).json() == one


def test_norms(mean: Server) -> None:
    raw = vectors(mean, SEVERAL[0], embd_normalize=-1)[0]
    assert norm(raw) != pytest.approx(1, abs=0.01)
    by = {how: vectors(mean, SEVERAL[0], embd_normalize=how)[0] for how in (0, 1, 2, 3)}
    assert max(abs(x) for x in by[0]) == pytest.approx(32760, rel=1e-4)
    assert sum(abs(x) for x in by[1]) == pytest.approx(1, rel=1e-3)
    assert norm(by[2]) == pytest.approx(1, rel=1e-3)
    assert sum(abs(x) ** 3 for x in by[3]) == pytest.approx(1, rel=1e-3)
    for vector in by.values():
        scale = vector[0] / raw[0]
        assert all(x == pytest.approx(y * scale, rel=1e-3, abs=1e-6)
                   for x, y in zip(vector, raw, strict=True))


def test_a_setting_is_the_default_norm(start: Callable[..., Server]) -> None:
    server = start("-c", "256", "-np", "1", "--embeddings", "--pooling", "mean",
                   "--embd-normalize", "-1")
    assert norm(vectors(server, "a b c")[0]) != pytest.approx(1, abs=0.01)


def test_without_pooling_each_token_has_a_vector(start: Callable[..., Server]) -> None:
    server = start("-c", "256", "-np", "1", "--embeddings", "--pooling", "none")
    tokens = server.post("/tokenize", {"content": "a b c d", "add_special": True}).json()["tokens"]
    answer = server.post("/embeddings", {"content": ["a b c d", "x"]}).json()
    assert len(answer[0]["embedding"]) == len(tokens)
    refused = server.post("/v1/embeddings", {"input": "x"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == \
        "Pooling type 'none' is not OAI compatible. Please use a different pooling type"
    # A generating model has no pooling of its own.
    own = start("-c", "256", "-np", "1", "--embeddings")
    assert own.post("/v1/embeddings", {"input": "x"}).status_code == 400


def test_a_server_without_it_says_how(server: Server) -> None:
    for path in ("/embedding", "/embeddings", "/v1/embeddings"):
        answer = server.post(path, {"input": "x"})
        assert answer.status_code == 501
        assert answer.json()["error"] == {
            "code": 501, "type": "not_supported_error", "message":
            "This server does not support embeddings. Start it with `--embeddings`"}
    with pytest.raises(RuntimeError, match="--pooling"):
        Server("--embeddings", "--pooling", "rank")


def test_texts_that_are_too_long(start: Callable[..., Server]) -> None:
    mean = start("-c", "512", "-np", "1", "--embeddings", "--pooling", "mean", "-ub", "64")
    assert len(vectors(mean, [[300] * 64])) == 1
    refused = mean.post("/v1/embeddings", {"input": ["x", [300] * 65]})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == (
        "input (65 tokens) is too large to process. increase the physical batch size "
        "(current batch size: 64)")
    # The last row sees all others, in whatever parts they are computed.
    last = start("-c", "512", "-np", "1", "--embeddings", "--pooling", "last", "-ub", "64")
    whole = start("-c", "512", "-np", "1", "--embeddings", "--pooling", "last")
    text = [300 + i for i in range(200)]
    assert alike(vectors(last, [text])[0], vectors(whole, [text])[0])
    refused = last.post("/v1/embeddings", {"input": [300] * 100_000})
    error = refused.json()["error"]
    assert refused.status_code == 400 and error["type"] == "exceed_context_size_error"
    assert error["n_prompt_tokens"] == 100_000


def test_many_texts_and_many_clients(mean: Server) -> None:
    texts = [f"This is text number {i}." * (1 + i % 7) for i in range(100)]
    alone = [vectors(mean, text)[0] for text in texts[:10]]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: vectors(mean, texts), range(8)))
    for reply in replies:
        assert len(reply) == 100 and all(alike(a, b) for a, b in zip(reply, alone))  # noqa: B905
    refused = mean.post("/v1/embeddings", {"input": ["x"] * 2049})
    assert refused.status_code == 400
    assert parse_metrics(mean.get("/metrics").text)["fermata_embedded_tokens_total"] > 1000


def test_beside_replies(mean: Server) -> None:
    alone = mean.complete(prompt="Count from 1 to 9.", n_predict=100, ignore_eos=True,
                          temperature=0)["content"]
    with ThreadPoolExecutor(4) as pool:
        replies = [pool.submit(mean.complete, prompt="Count from 1 to 9.", n_predict=100,
                               ignore_eos=True, temperature=0, cache_prompt=False)]
        many = [pool.submit(vectors, mean, SEVERAL * 20) for _ in range(3)]
        assert all(len(one.result()) == 80 for one in many)
    assert replies[0].result()["content"] == alone
    mean.check_clean()


def test_a_client_that_leaves_takes_its_texts_along(start: Callable[..., Server]) -> None:
    server = start("-c", "256", "-np", "1", "--embeddings", "--pooling", "mean", "--metrics",
                   "--queue-max", "4")
    body = {"input": ["word " * 400] * 500}
    for _ in range(4):
        reset(raw_post(server, "/v1/embeddings", body))
    wait_until(lambda: parse_metrics(server.get("/metrics").text)
               ["llamacpp:requests_deferred"] == 0, "the queue to be empty")
    done = parse_metrics(server.get("/metrics").text)["fermata_embedded_tokens_total"]
    assert done < 500 * 400
    assert len(vectors(server, "x")) == 1
    server.check_alive()


def test_a_full_queue_and_a_stop(start: Callable[..., Server]) -> None:
    server = start("-c", "256", "-np", "1", "--embeddings", "--pooling", "mean",
                   "--queue-max", "2", "--shutdown-timeout", "0", "--workers", "1")
    body = {"input": ["word " * 400] * 500}
    sockets = [raw_post(server, "/v1/embeddings", body) for _ in range(6)]
    heads = []
    server.process.terminate()
    for one in sockets:
        with one, contextlib.suppress(ConnectionResetError):  # Its request was still on its way.
            heads.append(one.recv(64).split(b"\r\n")[0])
    assert set(heads) <= {b"HTTP/1.1 429 Too Many Requests", b"HTTP/1.1 503 Service Unavailable",
                          b"HTTP/1.1 200 OK", b""}
    assert server.stop() == 0


@pytest.mark.parametrize("kind", ["sliding-window", "recurrent", "hybrid"])
def test_every_memory(start: Callable[..., Server], random_model: Callable[[str], Any],
                      kind: str) -> None:
    server = start("-c", "256", "-np", "1", "--embeddings", "--pooling", "mean",
                   model=random_model(kind))
    once = vectors(server, SEVERAL)
    assert all(alike(a, vectors(server, text)[0])
               for a, text in zip(once, SEVERAL, strict=True))
