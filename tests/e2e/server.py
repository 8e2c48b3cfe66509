"""Starts real servers for tests and talks to them."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("FERMATA_BINARY", ROOT / "build" / "release" / "fermata"))
MAKE_MODEL = Path(os.environ.get("FERMATA_MAKE_MODEL", ROOT / "build" / "release" / "make-model"))
TINY = ROOT / "models" / "fermata-tiny.gguf"
# Generous: sanitizer builds on a busy machine are slow, and no test asserts a timing.
PATIENCE_S = 120.0


def wait_until(condition: Any, what: str, patience_s: float = PATIENCE_S) -> None:
    """Polls until the condition holds; fails the test, naming `what`, when it never does."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f"waited {patience_s} s for: {what}"
        time.sleep(0.01)


class Server:
    """One `fermata serve` process on a free port of 127.0.0.1."""

    def __init__(self, *args: str, model: Path = TINY, env: dict[str, str] | None = None) -> None:
        command = [str(BINARY), "serve", "-m", str(model), "--host", "127.0.0.1", "--port", "0",
                   "-t", "1", "--poll", "0", *args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=os.environ | (env or {}))
        self.errors: list[str] = []
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        found = re.search(r"(https?)://127\.0\.0\.1:(\d+)", first)
        if found is None:
            self.process.wait(PATIENCE_S)
            self._reader.join(PATIENCE_S)
            raise RuntimeError(f"the server did not start: {first!r} {''.join(self.errors)!r}")
        self.port = int(found.group(2))
        self.url = f"{found.group(1)}://127.0.0.1:{self.port}"
        # What every request carries, and the certificate that it trusts.
        self.headers: dict[str, str] = {}
        self.verify: str | bool = True

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append(line)

    def get(self, path: str, **kwargs: Any) -> requests.Response:
        return self.ask("GET", path, **kwargs)

    def post(self, path: str, body: Any, **kwargs: Any) -> requests.Response:
        return self.ask("POST", path, json=body, **kwargs)

    def ask(self, method: str, path: str, **kwargs: Any) -> requests.Response:
        headers = self.headers | kwargs.pop("headers", {})
        return requests.request(method, self.url + path, headers=headers, verify=self.verify,
                                timeout=PATIENCE_S, **kwargs)

    def complete(self, **body: Any) -> dict[str, Any]:
        """A native completion that must succeed."""
        answer = self.post("/completion", body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def chat(self, *contents: str, **body: Any) -> dict[str, Any]:
        """A chat completion that must succeed; contents are user and assistant in turns."""
        answer = self.post("/v1/chat/completions", {"messages": turns(*contents)} | body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def stream(self, path: str, body: Any) -> Iterator[Any]:
        """The JSON events of a stream, strictly parsed; "[DONE]" comes as that string."""
        with self.post(path, body | {"stream": True}, stream=True) as answer:
            assert answer.status_code == 200, answer.text
            assert answer.headers["Content-Type"] == "text/event-stream"
            yield from parse_sse(answer.iter_content(chunk_size=None))

    def slots(self) -> list[dict[str, Any]]:
        return self.get("/slots").json()

    def is_idle(self) -> bool:
        """Nobody computes and nobody is parked."""
        return not any(slot["is_processing"] or slot["id"] < 0 for slot in self.slots())

    def check_alive(self) -> None:
        """Same process, healthy, and able to answer."""
        assert self.process.poll() is None
        assert self.get("/health").json() == {"status": "ok"}
        assert self.complete(prompt="x", n_predict=1)["tokens_predicted"] == 1

    def check_clean(self) -> None:
        wait_until(self.is_idle, "all slots to be idle")

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Ends the process; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code


def turns(*contents: str) -> list[dict[str, str]]:
    roles = ["user", "assistant"]
    return [{"role": roles[i % 2], "content": text} for i, text in enumerate(contents)]


def parse_sse(chunks: Iterator[bytes]) -> Iterator[Any]:
    """Only data fields and comments are allowed, each event ends in a blank line."""
    text = b""
    for chunk in chunks:
        text += chunk
        while b"\n\n" in text:
            event, text = text.split(b"\n\n", 1)
            if event.startswith(b":"):
                continue
            assert event.startswith(b"data: ") and b"\n" not in event, event
            data = event.removeprefix(b"data: ").decode("utf-8")
            yield data if data == "[DONE]" else json.loads(data)
    assert text == b"", f"an event without its blank line: {text!r}"


def chat_text(events: Iterator[Any]) -> str:
    """The content of a streamed chat, put together."""
    return "".join(choice["delta"].get("content") or ""
                   for event in events if event != "[DONE]" for choice in event["choices"])


def run(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end."""
    return subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=PATIENCE_S,
                          env=os.environ | (env or {}), check=False)


def raw_ask(server: Server, request: bytes) -> http.client.HTTPResponse:
    """Sends exactly these bytes; the first answer, its body unread."""
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    sock.sendall(request)
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    sock.close()
    return answer


def raw_post(server: Server, path: str, body: Any) -> socket.socket:
    """Sends a request on a bare socket and leaves the answer unread."""
    payload = json.dumps(body).encode()
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    sock.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {len(payload)}\r\n\r\n".encode() + payload)
    return sock


def reset(sock: socket.socket) -> None:
    """Closes with RST instead of FIN."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    sock.close()


def force(text: str) -> str:
    """A grammar whose only reply is `text`, whatever the model is."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'root ::= "{escaped}"'


def count_text(first: int, last: int) -> str:
    return " ".join(str(n) for n in range(first, last + 1))
