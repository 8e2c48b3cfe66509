"""HTTP/1.1 manners, limits, prefix, keepalives, log lines."""

import gzip
import http.client
import json
import re
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from server import PATIENCE_S, TINY, Server, raw_ask, raw_post, reset, run, wait_until

LONG = {"prompt": "x", "n_predict": 7000, "ignore_eos": True}


def error_of(answer: http.client.HTTPResponse) -> dict[str, Any]:
    return json.loads(answer.read())["error"]


@pytest.mark.parametrize(("request_bytes", "status"), [
    (b"GET /health HTTP/1.1\r\n\r\n", 400),
    (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"GET /health HTTP/1.0\r\n\r\n", 200),
    (b"GET http://elsewhere/health HTTP/1.1\r\nHost: a\r\n\r\n", 200),
    (b"GET /health HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417),
    (b"POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
     b"Content-Length: 9\r\n\r\n", 415),
    (b"GET /health HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    (b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", 431),
    (b"POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    (b"POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501)])
def test_heads_that_cannot_be_honoured(server: Server, request_bytes: bytes, status: int) -> None:
    # K6: what could not be honoured was ignored.
    answer = raw_ask(server, request_bytes)
    assert answer.status == status
    assert answer.headers["Server"] == "llama.cpp"
    if status != 200:
        error = error_of(answer)
        assert error["code"] == status and error["message"]
        assert answer.headers["Connection"] == "close"


def test_a_compressed_body_is_told_plainly(server: Server) -> None:
    answer = server.ask("POST", "/tokenize", data=gzip.compress(b'{"content":"x"}'),
                        headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 415
    assert answer.json()["error"]["message"].startswith("Content-Encoding: ")


@pytest.mark.parametrize(("method", "path"), [
    ("DELETE", "/health"), ("POST", "/health"), ("GET", "/completion"), ("PUT", "/tokenize"),
    ("GET", "/v1/chat/completions"), ("GET", "/slots/0"), ("PUT", "/slots/0"),
    ("DELETE", "/slots/0?action=park"), ("PATCH", "/slots/99"), ("DELETE", "/slots"),
    ("POST", "/metrics"), ("POST", "/slots/0/x?action=park")])
def test_a_wrong_method_is_an_unknown_route(server: Server, method: str, path: str) -> None:
    answer = server.ask(method, path, json={})
    assert answer.status_code == 404
    assert answer.json()["error"] == {"code": 404, "message": "File Not Found",
                                      "type": "not_found_error"}


def test_a_connection_is_kept_through_errors(server: Server) -> None:
    # K6: keep-alive ended with the first 4xx.
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    line.connect()
    own = line.sock
    for i in range(300):
        if i % 3 == 0:
            line.request("GET", "/nowhere")
        elif i % 3 == 1:
            line.request("POST", "/completion", body='{"prompt": []')
        else:
            line.request("POST", "/tokenize", body='{"content": "x"}')
        answer = line.getresponse()
        answer.read()
        assert answer.status == (404, 400, 200)[i % 3]
        assert line.sock is own
    line.close()


@pytest.mark.parametrize("stream", [False, True])
def test_close_is_honoured(server: Server, stream: bool) -> None:
    # K6: the connection stayed open and clients hung.
    body = json.dumps({"prompt": "x", "n_predict": 3, "stream": stream}).encode()
    for version, more in (("1.1", "Connection: close\r\n"), ("1.0", "")):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as sock:
            sock.sendall(f"POST /completion HTTP/{version}\r\nHost: x\r\n{more}"
                         f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = b""
            while piece := sock.recv(65536):
                answer += piece
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"\r\nConnection: close\r\n" in answer
            assert (b"Transfer-Encoding: chunked" in answer) == (stream and version == "1.1")


def test_requests_in_a_row_are_answered_in_order(server: Server) -> None:
    # K6: of pipelined requests only the first was answered.
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    texts = ["a", "bb", "ccc"]
    for text in texts:
        body = json.dumps({"content": text, "add_special": False}).encode()
        sock.sendall(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
                     % len(body) + body)
    seen = b""
    while seen.count(b"}") < len(texts):
        piece = sock.recv(4096)
        assert piece
        seen += piece
    answers = [json.loads(body) for body in re.findall(rb"\{.*?\}", seen)]
    assert answers == [server.post("/tokenize", {"content": text, "add_special": False}).json()
                       for text in texts]
    sock.close()


def test_bodies_in_chunks_and_after_continue(server: Server) -> None:
    # K6: chunked bodies were refused, and who waited for 100 waited for ever.
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    sock.sendall(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n")
    assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
    for piece in (b'{"con', b'tent": ', b'"hello"}'):
        sock.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
    sock.sendall(b"0\r\n\r\n")
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    assert answer.status == 200 and json.loads(answer.read())["tokens"]
    sock.close()


def test_a_legal_large_body_works_and_a_larger_one_is_refused(start: Callable[..., Server]) -> None:
    # K6: bodies over a few kB were refused, and a huge prompt aborted the process.
    server = start("-c", "1024", "--body-max-mib", "20")
    answer = server.post("/completion", {"prompt": "word " * 3_000_000})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "exceed_context_size_error"
    answer = server.post("/completion", {"prompt": "word " * 5_000_000})
    assert answer.status_code == 413
    server.check_alive()


def test_no_content_type_and_accept_encoding(server: Server) -> None:
    answer = server.ask("POST", "/tokenize", data=b'{"content":"x"}',
                        headers={"Accept-Encoding": "gzip, br"})
    assert answer.status_code == 200 and "Content-Encoding" not in answer.headers


def test_a_prefix_is_before_every_route(start: Callable[..., Server]) -> None:
    server = start("--api-prefix", "/llm/v2", "--api-key", "k", "--metrics")
    key = {"X-Api-Key": "k"}
    assert server.get("/llm/v2/health").json() == {"status": "ok"}
    assert server.get("/llm/v2/metrics", headers=key).status_code == 200
    body = {"prompt": "x", "n_predict": 1}
    assert server.post("/llm/v2/completion", body, headers=key).status_code == 200
    assert server.post("/llm/v2/completion", body).status_code == 401
    assert server.get("/llm/v2/no", headers=key).status_code == 404
    for path in ("/health", "/llm/health", "/llm/v2health", "/", "/v1/models", "/llm/v2/../slots"):
        answer = server.get(path, headers=key)
        assert answer.status_code == 404, path
        assert answer.json()["error"]["type"] == "not_found_error"
        assert "Access-Control-Allow-Origin" in answer.headers
    assert server.ask("OPTIONS", "/llm/v2/slots").status_code == 204


def test_a_silent_stream_gets_comments_unless_it_wants_none(start: Callable[..., Server]) -> None:
    # E3: nothing was written for minutes, and proxies dropped a healthy request.
    server = start("-np", "1", "-c", "8192", "--metrics")
    ahead = [raw_post(server, "/completion", LONG) for _ in range(8)]
    wait_until(lambda: "requests_deferred 7\n" in server.get("/metrics").text, "seven in the queue")
    pinged, silent = (raw_post(server, "/completion", {
        "prompt": "x", "stream": True, "sse_ping_interval": interval}) for interval in (1, -1))
    seen = b""
    while seen.count(b":\n\n") < 2:
        piece = pinged.recv(65536)
        assert piece
        seen += piece
    assert b"200 OK" in seen and b"Content-Type: text/event-stream" in seen
    assert b"data: " not in seen
    other = silent.recv(65536)
    assert other.endswith(b"\r\n\r\n"), "more than the head"
    for sock in (pinged, silent, *ahead):
        sock.close()
    server.check_clean()


def test_a_bad_keepalive_interval_is_told(server: Server) -> None:
    for bad in ("x", 1.5, -2, 1e9, []):
        answer = server.post("/completion", {"prompt": "x", "sse_ping_interval": bad})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("sse_ping_interval: ")


def log_lines(server: Server) -> list[str]:
    assert server.stop() == 0
    return server.errors


def test_a_line_for_each_request(start: Callable[..., Server]) -> None:
    server = start()
    server.get("/health")
    server.get("/secret-path?token=secret-query")
    server.post("/completion", {"prompt": "secret-prompt", "n_predict": 1},
                headers={"X-Api-Key": "secret-key", "Cookie": "secret-cookie"})
    server.get("/%0aInjected%1b[31m" + "x" * 5000)
    raw_ask(server, b"secret-nonsense\r\n\r\n")
    lines = log_lines(server)
    text = "".join(lines)
    assert re.search(r"I GET /secret-path 404, \d+ bytes, [0-9.]+ ms\n", text), text
    assert re.search(r"I POST /completion 200, \d+ bytes, [0-9.]+ ms\n", text)
    assert re.search(r"I GET /\?Injected\?\[31mx+\.\.\. 404", text)
    assert re.search(r"I - - 400, ", text)
    assert "GET /health" not in text
    for secret in ("secret-query", "secret-prompt", "secret-key", "secret-cookie",
                   "secret-nonsense"):
        assert secret not in text
    assert max(len(line) for line in lines) < 400


def test_verbose_shows_polls_too_and_quiet_shows_none(start: Callable[..., Server]) -> None:
    for flags, shown in ((["-v"], True), (["-lv", "2"], False), (["--log-disable"], False)):
        server = start(*flags)
        server.get("/health")
        server.get("/no")
        text = "".join(log_lines(server))
        assert ("GET /health 200" in text) == shown
        assert ("GET /no 404" in text) == shown


def test_a_client_that_leaves_is_noted(start: Callable[..., Server]) -> None:
    server = start("-c", "8192")
    sock = raw_post(server, "/completion", LONG)
    wait_until(lambda: not server.is_idle(), "the request to run")
    reset(sock)
    server.check_clean()
    assert any("POST /completion -, 0 bytes" in line and "cut off" in line
               for line in log_lines(server))


def test_the_log_as_json_in_a_file(start: Callable[..., Server], tmp_path: Path) -> None:
    file = tmp_path / "log"
    server = start("--log-jsonl", "--log-file", str(file), "--log-colors", "on")
    server.get('/with"quotes\\and')
    assert log_lines(server) == []
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(set(line) == {"time", "level", "message"} for line in lines)
    assert any(line["level"] == "info" and line["message"].startswith('GET /with"quotes\\and 404')
               for line in lines)


def test_colours_and_prefixes_of_the_log(start: Callable[..., Server]) -> None:
    for flags, pattern in [(["--log-colors", "on"], r"^\S+ \S+ \x1b\[\d+mI\x1b\[.?m GET /no"),
                           ([], r"^\S+ \S+ I GET /no"), (["--no-log-prefix"], r"^\S+ \S+ GET /no"),
                           (["--no-log-prefix", "--no-log-timestamps"], r"^GET /no")]:
        server = start(*flags)
        server.get("/no")
        text = "".join(log_lines(server))
        assert re.search(pattern, text, re.MULTILINE), text


def test_a_client_that_reads_nothing_does_not_hold_a_stop(start: Callable[..., Server]) -> None:
    # K3: the stop waited for somebody who was not there any more.
    server = start("-c", "8192", "--shutdown-timeout", "3600", "--events-per-request-max", "8")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.connect(("127.0.0.1", server.port))
    sock.settimeout(PATIENCE_S)
    body = json.dumps(LONG | {"stream": True, "n_probs": 50, "return_tokens": True}).encode()
    sock.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                 + body)
    decoded = [-1]

    def stuck() -> bool:
        busy = [slot for slot in server.slots() if slot["is_processing"]]
        decoded.append(busy[0]["next_token"][0]["n_decoded"] if busy else 0)
        return len(decoded) > 50 and decoded[-1] > 10 and len(set(decoded[-30:])) == 1

    wait_until(stuck, "the unread stream to stand still")
    assert server.stop() == 0
    sock.close()


def open_files(server: Server, limit: int) -> None:
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limit))


def test_more_connections_than_open_files(start: Callable[..., Server]) -> None:
    server = start()
    used = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
    open_files(server, used + 20)
    socks = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
             for _ in range(60)]
    wait_until(lambda: any("cannot accept" in line for line in server.errors), "the log line")
    for sock in socks:
        sock.close()
    server.check_alive()
    server.check_clean()


def threads(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def test_idle_streams_need_no_threads(start: Callable[..., Server]) -> None:
    server = start("-np", "1", "-c", "8192", "--queue-max", "500", "--metrics")
    first = raw_post(server, "/completion", LONG)
    wait_until(lambda: not server.is_idle(), "the first to run")
    before = threads(server)
    socks = [raw_post(server, "/completion", {"prompt": "x", "n_predict": 1, "stream": True})
             for _ in range(300)]
    wait_until(lambda: "requests_deferred 300\n" in server.get("/metrics").text, "300 in the queue")
    assert threads(server) == before
    for sock in (first, *socks):
        sock.close()
    server.check_clean()
    server.check_alive()


def test_an_error_before_the_first_byte_is_an_error(server: Server) -> None:
    # E1: a failure came under status 200, on a line that clients drop.
    answer = server.post("/completion", {"prompt": "word " * 20_000, "stream": True})
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize(("args", "words"), [
    (["serve", "-m"], "-m needs a value: give FNAME"),
    (["serve", "-m", ""], "give one with -m MODEL.gguf"),
    (["serve", "-m", str(TINY), "--chat-template-file", "/nowhere.jinja"], "name a file"),
    (["serve", "-m", str(TINY), "--chat-template-file", "/tmp"], "name a file"),
    (["serve", "-m", str(TINY), "--chat-template-file", "/dev/null"], "leave the flag out"),
    (["serve", "-m", str(TINY), "--api-prefix", "llm/"], "like /llm"),
    (["serve", "-m", str(TINY), "--host", "no such host"], "see --host"),
    (["serve", "extra"], "see --help"),
    (["version", "x"], "leave 'x' out"),
    (["doctor", "x"], "no arguments")])
def test_a_hopeless_start_says_the_mend(args: list[str], words: str) -> None:
    done = run(*args)
    assert done.returncode in (2, 6), (done.returncode, done.stderr)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and words in errors[0], done.stderr


def test_post_props(start: Callable[..., Server]) -> None:
    answer = start("--props").post("/props", {})
    assert answer.status_code == 200 and answer.json() == {"success": True}


def test_a_refused_connection_is_told(start: Callable[..., Server]) -> None:
    server = start("--connections-max", "2")
    held = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
            for _ in range(2)]
    for sock in held:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in sock.recv(1000)
    answer = requests.get(server.url + "/health", timeout=PATIENCE_S)
    assert answer.status_code == 503 and answer.headers["Retry-After"] == "1"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    for sock in held:
        sock.close()
