"""Web pages of other origins."""

from collections.abc import Callable
from typing import Any

import pytest
from server import Server, raw_ask

ALLOW = "Access-Control-Allow-"
PAGE = "https://chat.example"


def preflight(server: Server, path: str, origin: str = PAGE) -> Any:
    return server.ask("OPTIONS", path, headers={
        "Origin": origin, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type"})


def test_preflight_needs_no_key(start: Callable[..., Server]) -> None:
    # K1: OPTIONS was answered 401, so that browsers could not use a key.
    server = start("--api-key", "k")
    for path in ("/v1/chat/completions", "/slots", "/slots/0?action=park", "/props", "/nowhere"):
        answer = preflight(server, path)
        assert answer.status_code == 204, path
        assert answer.headers[ALLOW + "Origin"] == PAGE
        assert answer.headers[ALLOW + "Credentials"] == "true"
        assert "POST" in answer.headers[ALLOW + "Methods"]
        assert answer.headers[ALLOW + "Headers"] == "authorization,content-type"
        assert "Origin" in answer.headers["Vary"]
    plain = server.ask("OPTIONS", "/slots")
    assert plain.status_code == 204 and plain.headers[ALLOW + "Origin"] == "*"


def test_every_answer_says_who_may_read_it(start: Callable[..., Server]) -> None:
    server = start("--api-key", "k", "--body-max-mib", "1")
    page, key = {"Origin": PAGE}, {"X-Api-Key": "k"}
    body = {"prompt": "x", "n_predict": 2}
    answers = [server.get("/health", headers=page), server.get("/slots", headers=page),
               server.get("/nowhere", headers=page | key),
               server.post("/completion", {"prompt": {}}, headers=page | key),
               server.post("/completion", body, headers=page | key),
               server.post("/completion", body | {"stream": True}, headers=page | key),
               server.post("/tokenize", {"content": "x" * 2_000_000}, headers=page | key)]
    assert [answer.status_code for answer in answers] == [200, 401, 404, 400, 200, 200, 413]
    for answer in answers:
        assert answer.headers[ALLOW + "Origin"] == PAGE, answer.status_code
        assert ALLOW + "Methods" not in answer.headers
    broken = raw_ask(server, b"NONSENSE\r\n\r\n")
    assert broken.status == 400 and broken.headers[ALLOW + "Origin"] == "*"


def allowed(server: Server, origin: str) -> str | None:
    return server.get("/health", headers={"Origin": origin}).headers.get(ALLOW + "Origin")


def test_a_list_of_origins(start: Callable[..., Server]) -> None:
    server = start("--cors-origins", f"{PAGE},http://two.example:8000", "--no-cors-credentials",
                   "--cors-methods", "POST", "--cors-headers", "Authorization")
    for origin in (PAGE, "http://two.example:8000"):
        assert allowed(server, origin) == origin
    for origin in ("http://chat.example", PAGE + ".evil.example", "null", "", "http://two.example"):
        assert allowed(server, origin) is None, origin
    answer = preflight(server, "/props")
    assert answer.headers[ALLOW + "Methods"] == "POST"
    assert answer.headers[ALLOW + "Headers"] == "Authorization"
    assert ALLOW + "Credentials" not in answer.headers
    assert preflight(server, "/props", "http://other").headers.get(ALLOW + "Origin") is None


def test_pages_of_this_machine(start: Callable[..., Server]) -> None:
    server = start("--cors-origins", "localhost")
    for origin in ("http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080"):
        assert allowed(server, origin) == origin
    for origin in ("http://localhost.evil.example", "http://evil.example:80", "localhost",
                   "http://evil.example/#http://localhost", "http://[::1].evil.example"):
        assert allowed(server, origin) is None, origin


@pytest.mark.parametrize("origin", ["x" * 5000, "http://a\tb"], ids=["long", "tab"])
def test_odd_origins_do_no_harm(server: Server, origin: str) -> None:
    answer = server.get("/health", headers={"Origin": origin})
    assert answer.status_code == 200


def test_everybody_without_credentials(start: Callable[..., Server]) -> None:
    server = start("--no-cors-credentials")
    answer = server.get("/health", headers={"Origin": PAGE})
    assert answer.headers[ALLOW + "Origin"] == "*" and ALLOW + "Credentials" not in answer.headers
