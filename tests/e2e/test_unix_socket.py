"""Unix sockets, several hosts, shared ports."""

import http.client
import json
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from server import PATIENCE_S, TINY, Server, run, wait_until


class Line(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self._path)


def ask(path: Path, method: str, target: str, body: Any = None) -> tuple[int, Any]:
    line = Line(path)
    line.request(method, target, body=None if body is None else json.dumps(body))
    answer = line.getresponse()
    content = answer.read()
    line.close()
    return answer.status, content


def test_a_socket_beside_an_address(start: Callable[..., Server], tmp_path: Path) -> None:
    path = tmp_path / "fermata.sock"
    server = start("--host", str(path))
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ask(path, "GET", "/health")[0] == 200
    status, content = ask(path, "POST", "/completion",
                          {"prompt": "x", "n_predict": 5, "ignore_eos": True, "stream": True})
    assert status == 200 and content.count(b"data: ") >= 5
    server.check_alive()
    assert server.stop() == 0
    assert not path.exists()


def test_a_client_that_leaves_a_socket_frees_its_slot(start: Callable[..., Server],
                                                      tmp_path: Path) -> None:
    path = tmp_path / "fermata.sock"
    server = start("--host", str(path), "-c", "4096")
    line = Line(path)
    line.request("POST", "/completion",
                 body=json.dumps({"prompt": "x", "n_predict": 4000, "ignore_eos": True}))
    wait_until(lambda: not server.is_idle(), "the request to run")
    line.close()
    server.check_clean()


def test_a_stale_file_is_replaced_and_a_live_one_is_not(start: Callable[..., Server],
                                                        tmp_path: Path) -> None:
    path = tmp_path / "fermata.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    server = start("--host", str(path))
    assert ask(path, "GET", "/health")[0] == 200
    done = run("serve", "-m", str(TINY), "--host", str(path))
    assert done.returncode == 6
    assert "a program answers there" in done.stderr
    assert ask(path, "GET", "/health")[0] == 200
    # The place was taken over by somebody else: the file is not ours any more.
    path.unlink()
    path.write_text("mine")
    assert server.stop() == 0
    assert path.read_text() == "mine"


def test_places_where_no_socket_can_be(tmp_path: Path) -> None:
    file = tmp_path / "file.sock"
    file.write_text("precious")
    for path, words in [(file, "remove it"), (tmp_path / "no" / "x.sock", "choose another path"),
                        (tmp_path / ("x" * 120 + ".sock"), "at most")]:
        done = run("serve", "-m", str(TINY), "--host", str(path))
        assert done.returncode == 6, done.stderr
        assert words in done.stderr
    assert file.read_text() == "precious"


def test_one_port_for_two_servers(start: Callable[..., Server]) -> None:
    first = start("--reuse-port")
    second = start("--reuse-port", "--port", str(first.port))
    assert second.port == first.port
    assert first.stop() == 0
    second.check_alive()
