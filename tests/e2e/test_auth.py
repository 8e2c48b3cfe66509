"""API keys."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from server import PATIENCE_S, Server, run

KEY, OTHER = "sk-first-key", "sk-second-key"
PUBLIC = ["/health", "/v1/health", "/models", "/v1/models"]
CLOSED = [("GET", "/props"), ("POST", "/props"), ("GET", "/slots"), ("GET", "/metrics"),
          ("POST", "/slots/0?action=park"), ("POST", "/slots?action=unpark&id_task=1"),
          ("POST", "/completion"), ("POST", "/completions"), ("POST", "/v1/completions"),
          ("POST", "/chat/completions"), ("POST", "/v1/chat/completions"), ("POST", "/tokenize"),
          ("POST", "/detokenize"), ("POST", "/apply-template"), ("POST", "/infill"),
          ("POST", "/v1/embeddings"), ("GET", "/lora-adapters"), ("POST", "/v1/messages"),
          ("POST", "/models"), ("DELETE", "/v1/models"), ("GET", "/no-such-thing"),
          ("GET", "//v1/models"), ("GET", "/v1/models/"), ("GET", "/health/../slots"),
          ("GET", "/health%2f..%2fslots"), ("HEAD", "/slots"), ("PATCH", "/health")]


@pytest.fixture(scope="module")
def locked() -> Any:
    server = Server("-c", "1024", "-np", "2", "--metrics", "--api-key", f"{KEY}, {OTHER}")
    server.headers = {"Authorization": f"Bearer {KEY}"}
    yield server
    server.check_clean()
    server.check_alive()
    assert server.stop() == 0


def without_key(server: Server, method: str, path: str, **headers: str) -> Any:
    return server.ask(method, path, json={"prompt": "x", "n_predict": 1},
                      headers={"Authorization": None} | headers)


def check_refused(answer: Any) -> None:
    assert answer.status_code == 401, answer.text
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    if answer.request.method != "HEAD":
        body = answer.json()
        assert body.pop("type", "error") == "error"  # As Anthropic's clients want it.
        assert body == {"error": {"message": "Invalid API Key", "code": 401,
                                           "type": "authentication_error"}}


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_closed_without_a_key(locked: Server, method: str, path: str) -> None:
    # K1: slots and metrics were readable without a key and showed what others ask.
    check_refused(without_key(locked, method, path))


@pytest.mark.parametrize("path", PUBLIC)
def test_public_without_a_key(locked: Server, path: str) -> None:
    for method in ("GET", "HEAD"):
        assert without_key(locked, method, path).status_code == 200
        assert without_key(locked, method, path, Authorization="Bearer wrong").status_code == 200


@pytest.mark.parametrize("headers", [
    {"Authorization": f"Bearer {KEY}"}, {"Authorization": f"bearer {KEY}"},
    {"Authorization": f"Bearer   {OTHER} "}, {"X-Api-Key": OTHER},
    {"Authorization": "Bearer wrong", "x-api-key": KEY}])
def test_a_key_opens(locked: Server, headers: dict[str, str]) -> None:
    answer = without_key(locked, "POST", "/completion", **headers)
    assert answer.status_code == 200, answer.text
    assert without_key(locked, "GET", "/slots", **headers).status_code == 200


@pytest.mark.parametrize("headers", [
    {"Authorization": "Bearer wrong"}, {"Authorization": KEY}, {"Authorization": "Bearer"},
    {"Authorization": "Bearer "}, {"Authorization": f"Basic {KEY}"}, {"Authorization": ""},
    {"Authorization": f"Bearer {KEY[:-1]}"}, {"Authorization": f"Bearer {KEY}x"},
    {"Authorization": f"Bearer {KEY},{OTHER}"}, {"Authorization": f"Bearer {KEY.upper()}"},
    {"X-Api-Key": ""}, {"X-Api-Key": f"Bearer {KEY}"}, {"Cookie": f"key={KEY}"},
    {"Authorization": "Bearer " + "k" * 10_000}])
def test_what_is_no_key_does_not_open(locked: Server, headers: dict[str, str]) -> None:
    check_refused(without_key(locked, "GET", "/slots", **headers))


def test_a_key_in_the_query_does_not_open(locked: Server) -> None:
    check_refused(without_key(locked, "GET", f"/slots?api_key={KEY}&key={KEY}"))


def test_a_refusal_keeps_the_connection(locked: Server) -> None:
    import http.client
    line = http.client.HTTPConnection("127.0.0.1", locked.port, timeout=PATIENCE_S)
    for status, headers in ((401, {}), (200, {"X-Api-Key": KEY}), (401, {})):
        line.request("POST", "/tokenize", body='{"content":"x"}', headers=headers)
        answer = line.getresponse()
        answer.read()
        assert answer.status == status
    line.close()


def test_keys_from_the_variable_and_from_a_file(start: Callable[..., Server],
                                                tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("\r\n  sk-in-file-1  \r\n\nsk-in-file-2")
    server = start("--api-key-file", str(file), env={"LLAMA_API_KEY": "sk-env-1,sk-env-2"})
    for key in ("sk-in-file-1", "sk-in-file-2", "sk-env-1", "sk-env-2"):
        assert server.get("/props", headers={"X-Api-Key": key}).status_code == 200, key
    for key in ("", "\r", "sk-in-file-3"):
        assert server.get("/props", headers={"X-Api-Key": key.strip()}).status_code == 401


def test_keys_are_written_nowhere(start: Callable[..., Server], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("sk-in-file-1\n")
    server = start("--api-key", KEY, "--api-key-file", str(file), "-v", "--metrics", "--props")
    headers = {"Authorization": f"Bearer {KEY}"}
    seen = [server.get(path, headers=headers).text
            for path in ("/props", "/slots", "/metrics", f"/no?key={KEY}", f"/health?key={KEY}")]
    seen.append(server.get("/slots", headers={"X-Api-Key": "sk-mistyped"}).text)
    assert server.stop() == 0
    seen += server.errors
    for secret in (KEY, "sk-in-file-1", "sk-mistyped"):
        assert secret not in "".join(seen)


@pytest.mark.parametrize(("content", "words"), [
    (None, "No such file"), (b"", "empty"), (b"\n  \r\n", "no key"), ("folder", "folder"),
    ("large", "bytes")])
def test_a_bad_key_file_ends_the_start(tmp_path: Path, content: Any, words: str) -> None:
    path = tmp_path / "keys"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(b"k\n" * 600_000 if content == "large" else content)
    done = run("serve", "-m", "x.gguf", "--api-key-file", str(path))
    assert done.returncode == 2, done.stderr
    assert "--api-key-file" in done.stderr and words in done.stderr


def test_an_empty_key_is_no_key(tmp_path: Path) -> None:
    done = run("serve", "-m", "x.gguf", "--api-key", "")
    assert done.returncode == 2 and "--api-key" in done.stderr
