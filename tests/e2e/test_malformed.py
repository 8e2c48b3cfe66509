"""Hundreds of wrong requests over all POST routes: each is told what is wrong, nothing stays."""

import json
import re
import socket
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path

import pytest
import requests

from malformed import RAW, SLOW, Bad, table
from server import PATIENCE_S, Server
from test_overload import is_sanitized, rss_mib

WINDOW = 1024
ARGS = ("-c", str(WINDOW), "-np", "4", "--metrics", "--embeddings", "--pooling", "mean")
# The same requests come again; what the first third took may stay, the others add nothing. (Each
# worker has its own arena, and grows once.)
ROUNDS = 6
GROWTH_MIB_MAX = 2.0


def error_of(status: int, text: str) -> dict[str, object]:
    """The error object, of the documented shape."""
    error = json.loads(text)["error"]
    assert error["code"] == status and isinstance(error["message"], str) and error["message"]
    assert re.fullmatch(r"[a-z_]+_error", error["type"]), error
    return error


def fault(bad: Bad, answer: requests.Response) -> str | None:
    """What is wrong with the answer, if anything."""
    told = f"{bad}: {answer.status_code} {answer.text[:200]}"
    if not 400 <= answer.status_code < 500 and answer.status_code != 501:
        return told
    try:
        # Anthropic's routes wrap the same object.
        error = error_of(answer.status_code, answer.text) if '"code"' in answer.text \
            else json.loads(answer.text)["error"]
    except (ValueError, KeyError, AssertionError):
        return f"not an error object: {told}"
    if answer.status_code == 501:
        return None if re.search("support", str(error["message"])) else told
    return None if str(error["message"]).startswith(bad.field) else f"field unnamed: {told}"


def send_raw(server: Server, data: bytes) -> tuple[int, str]:
    """Status and body of the answer; the connection may be cut while more is being sent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as sock:
        try:
            sock.sendall(data)
        except OSError:
            pass  # It has answered already.
        answer = HTTPResponse(sock)
        answer.begin()
        return answer.status, answer.read().decode()


def test_a_table_of_wrong_requests(start: Callable[..., Server]) -> None:
    # G1, J4, F3: a client's mistakes came back as server errors, hung the server or ended it.
    server = start(*ARGS, "--cache-ram", "0")  # What is kept there is no leak.
    bads = table(WINDOW)
    assert len(bads) > 300
    assert {"/completion", "/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize",
            "/apply-template", "/v1/messages", "/v1/responses", "/infill",
            "/v1/embeddings"} <= {bad.path for bad in bads}
    faults, sizes = [], []
    with requests.Session() as session:
        for _ in range(ROUNDS):
            for bad in bads:
                answer = session.post(server.url + bad.path, data=bad.body, timeout=PATIENCE_S)
                faults += [told for told in [fault(bad, answer)] if told]
            server.check_clean()
            sizes.append(rss_mib(server))
            assert not faults, f"{len(faults)} of {len(bads)}:\n" + "\n".join(faults)
    server.check_alive()
    if not is_sanitized(server):
        assert sizes[-1] - sizes[ROUNDS // 3 - 1] < GROWTH_MIB_MAX, sizes


@pytest.mark.parametrize(("data", "statuses"), RAW, ids=range(len(RAW)))
def test_broken_http(server: Server, data: bytes, statuses: set[int]) -> None:
    status, body = send_raw(server, data)
    assert status in statuses, body
    error_of(status, body)


def test_requests_that_never_end(start: Callable[..., Server]) -> None:
    # K6: a client that stopped in the middle of its request held a thread for ever.
    server = start(*ARGS, "--timeout", "1")
    socks = []
    for data in SLOW * 5:
        sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        sock.sendall(data)
        socks.append(sock)
    server.check_alive()
    for sock in socks:
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
        sock.close()
        if answer:
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408 "), head
            error_of(408, body.decode())
    server.check_clean()
    server.check_alive()


@pytest.mark.parametrize(("template", "words"), [
    ("{{ raise_exception('no such order') }}", "no such order"),
    ("{{ messages[0].nothing.at_all }}", "empty"), ("{{ messages | nonsense }}", ""),
    ("{% for m in messages %}{{ m.content.x.y }}{% endfor %}", "empty")])
def test_templates_that_fail(start: Callable[..., Server], tmp_path: Path, template: str,
                             words: str) -> None:
    # J4: a template that failed was a server error.
    path = tmp_path / "template.jinja"
    path.write_text(template)
    try:
        server = start("--chat-template-file", str(path))
    except RuntimeError as refused:
        assert "template" in str(refused)
        return
    body = {"messages": [{"role": "user", "content": "x"}]}
    answer = server.post("/v1/chat/completions", body)
    assert answer.status_code == 400, answer.text
    assert words in str(error_of(400, answer.text)["message"])
    shown = server.post("/apply-template", body)
    assert shown.status_code == 400 or shown.json() == {"prompt": ""}, shown.text
    server.check_alive()
