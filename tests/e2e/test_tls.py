"""TLS."""

import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from server import PATIENCE_S, TINY, Server, run, wait_until


def make_pair(folder: Path, name: str, *options: str) -> tuple[str, str]:
    key, cert = folder / f"{name}.key", folder / f"{name}.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-keyout", key, "-out", cert,
                    "-days", "2", "-subj", f"/CN={name}", "-addext",
                    "subjectAltName=IP:127.0.0.1,DNS:localhost", *(options or ["-nodes"])],
                   check=True, capture_output=True)
    return str(key), str(cert)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_pair(tmp_path_factory.mktemp("tls"), "server")


@pytest.fixture
def secure(start: Callable[..., Server], pair: tuple[str, str]) -> Server:
    server = start("-c", "4096", "--ssl-key-file", pair[0], "--ssl-cert-file", pair[1])
    server.verify = pair[1]
    return server


def test_requests_and_streams(secure: Server) -> None:
    assert secure.url.startswith("https://")
    secure.check_alive()
    body = {"prompt": "x", "n_predict": 300, "ignore_eos": True, "temperature": 0}
    whole = secure.complete(**body)
    events = list(secure.stream("/completion", body))
    assert "".join(event["content"] for event in events) == whole["content"]
    assert events[-1]["stop"] is True
    tokens = secure.post("/tokenize", {"content": "word " * 400_000}).json()["tokens"]
    assert len(tokens) > 400_000
    secure.check_clean()


def connect(server: Server, cert: str, protocols: list[str]) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=cert)
    context.set_alpn_protocols(protocols)
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_the_protocol_is_http_1_1(secure: Server, pair: tuple[str, str]) -> None:
    line = connect(secure, pair[1], ["h2", "http/1.1"])
    assert line.selected_alpn_protocol() == "http/1.1"
    assert line.version() in ("TLSv1.2", "TLSv1.3")
    line.close()
    with pytest.raises(ssl.SSLError):
        connect(secure, pair[1], ["h2"])
    secure.check_alive()


def test_a_client_that_goes_away_frees_its_slot(secure: Server, pair: tuple[str, str]) -> None:
    # D1: after a disconnect the slot generated on to the limit.
    for leave in (lambda line: line.unwrap(), lambda line: line.shutdown(socket.SHUT_RDWR)):
        line = connect(secure, pair[1], ["http/1.1"])
        body = b'{"prompt":"x","n_predict":4000,"ignore_eos":true,"stream":true}'
        line.sendall(b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
                     % len(body) + body)
        assert line.recv(10)
        assert not secure.is_idle()
        try:
            leave(line)
        except (ssl.SSLError, OSError):
            pass  # The rest of the stream was on its way.
        line.close()
        secure.check_clean()


def test_what_is_no_handshake_does_no_harm(secure: Server) -> None:
    silent = [socket.create_connection(("127.0.0.1", secure.port), timeout=PATIENCE_S)
              for _ in range(5)]
    for junk in (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01" + b"x" * 500, b"\0"):
        with socket.create_connection(("127.0.0.1", secure.port), timeout=PATIENCE_S) as line:
            line.sendall(junk)
            try:
                line.shutdown(socket.SHUT_WR)
                while line.recv(1000):
                    pass
            except ConnectionError:
                pass  # It was thrown out: fine.
    secure.check_alive()
    # A handshake that never ends is ended: the kernel tells by the end of the connection.
    for line in silent:
        assert line.recv(10) == b""
        line.close()


def test_a_handshake_does_not_hold_up_a_stop(secure: Server) -> None:
    line = socket.create_connection(("127.0.0.1", secure.port), timeout=PATIENCE_S)
    line.sendall(b"\x16\x03\x01")
    secure.check_alive()
    assert secure.stop() == 0
    line.close()


def test_a_stream_survives_a_graceful_stop(secure: Server) -> None:
    events = secure.stream("/completion", {"prompt": "x", "n_predict": 1000, "ignore_eos": True})
    next(events)
    secure.process.terminate()
    assert list(events)[-1]["tokens_predicted"] == 1000
    assert secure.process.wait(PATIENCE_S) == 0


def test_bad_files_end_the_start(pair: tuple[str, str], tmp_path: Path) -> None:
    other_key, _ = make_pair(tmp_path, "other")
    locked_key, locked_cert = make_pair(tmp_path, "locked", "-passout", "pass:secret")
    junk = tmp_path / "junk.pem"
    junk.write_text("nothing")
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for key, cert, words in [
            (pair[0], "/nowhere.crt", "No such file"), ("/nowhere.key", pair[1], "No such file"),
            (pair[0], str(junk), "--ssl-cert-file"), (str(junk), pair[1], "--ssl-key-file"),
            (pair[0], str(empty), "empty"), (other_key, pair[1], "not"),
            (locked_key, locked_cert, "without a password"), (str(tmp_path), pair[1], "")]:
        done = run("serve", "-m", str(TINY), "--port", "0", "--ssl-key-file", key,
                   "--ssl-cert-file", cert)
        assert done.returncode == 6, (done.returncode, done.stderr)
        assert "error: --ssl-" in done.stderr and words in done.stderr, done.stderr


@pytest.mark.parametrize("flag", ["--ssl-key-file", "--ssl-cert-file"])
def test_one_file_alone_is_refused(flag: str, pair: tuple[str, str]) -> None:
    done = run("serve", "-m", str(TINY), flag, pair[0])
    assert done.returncode == 2 and "give the other one too" in done.stderr


def test_many_connections(secure: Server) -> None:
    wait_until(lambda: all(secure.get("/health").ok for _ in range(50)), "fifty handshakes")
