"""Starting, refusing to start, and stopping."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from server import PATIENCE_S, TINY, Server, raw_post, run, wait_until


@pytest.mark.parametrize(("args", "code", "words"), [
    (["serve", "--ctx-sise", "5", "-m", "x"], 2, "--ctx-size"),
    (["serve", "-c", "many", "-m", "x"], 2, "-c"),
    (["serve", "-c"], 2, "-c"),
    (["serve", "--draft-max", "3"], 2, "--draft-max"),
    (["serve", "--model-url", "x"], 2, "not supported"),
    (["serve"], 2, "-m"),
    (["serve", "-m", "/nowhere/model.gguf", "--port", "0"], 4, "/nowhere/model.gguf"),
    (["serve", "-m", str(TINY), "--host", "256.1.1.1"], 6, "256.1.1.1"),
    (["serve", "-m", str(TINY), "--port", "0", "-c", "250000000", "-np", "4"], 5, ""),
    (["serve", "-m", str(TINY), "--port", "0", "-c", "1", "-np", "4"], 2, "--ctx-size"),
    (["serve", "-m", str(TINY), "--port", "0", "-ctv", "q4_0", "-fa", "off"], 2, "flash"),
    (["serve", "-m", str(TINY), "-np", "10000"], 2, "-np"),
    (["dance"], 2, "dance")])
def test_a_hopeless_start_says_why_in_one_line(args: list[str], code: int, words: str) -> None:
    # H2: bad geometry passed option parsing and the process died in the library.
    done = run(*args)
    assert done.returncode == code, (done.returncode, done.stderr)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and words in errors[0], done.stderr


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    for content in (b"", b"GGUF", TINY.read_bytes()[:100_000], os.urandom(5000)):
        path = tmp_path / "bad.gguf"
        path.write_bytes(content)
        done = run("serve", "-m", str(path), "--port", "0")
        assert done.returncode == 4, done.stderr
        assert "bad.gguf" in done.stderr


def test_a_taken_port_is_told(start: Callable[..., Server]) -> None:
    server = start()
    done = run("serve", "-m", str(TINY), "--port", str(server.port))
    assert done.returncode == 6
    assert str(server.port) in done.stderr


@pytest.mark.parametrize("geometry", [
    ["-c", "64", "-np", "1"], ["-c", "300", "-np", "3"],
    ["-c", "1024", "-np", "3", "--no-kv-unified"], ["-np", "255", "-c", "4096"],
    ["-c", "512", "-b", "1", "-ub", "1"], ["-c", "512", "-ctk", "q8_0", "-ctv", "q8_0"],
    ["-c", "512", "-fa", "off"]])
def test_odd_geometries_serve(start: Callable[..., Server], geometry: list[str]) -> None:
    # H1: the limit that is told is the limit that is enforced.
    server = start(*geometry)
    window = server.get("/props").json()["default_generation_settings"]["n_ctx"]
    assert {slot["n_ctx"] for slot in server.slots()} == {window}
    assert server.get("/v1/models").json()["data"][0]["meta"]["n_ctx"] == window
    assert server.post("/completion", {"prompt": [50] * window}).status_code == 400
    assert server.complete(prompt=[50] * (window - 1), n_predict=5)["tokens_predicted"] == 1
    server.check_alive()


def test_help_version_doctor() -> None:
    text = run("--help").stdout
    for flag in ("-c,", "--ctx-size", "LLAMA_ARG_CTX_SIZE", "--step-budget-ms", "-np,"):
        assert flag in text
    assert "libllama" in run("version").stdout
    doctor = run("doctor")
    assert "cores" in doctor.stdout and "cpu backend" in doctor.stdout
    assert "GB/s on huge pages" in doctor.stdout


def test_environment_sets_what_arguments_do_not(start: Callable[..., Server]) -> None:
    server = start("-np", "2", env={"LLAMA_ARG_CTX_SIZE": "512", "LLAMA_ARG_N_PARALLEL": "7"})
    props = server.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == 512
    assert props["total_slots"] == 2


def test_sigterm_when_idle_ends_at_once(start: Callable[..., Server]) -> None:
    server = start()
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
    assert server.get("/health").ok
    assert server.stop() == 0
    for sock in idle:
        sock.close()


def test_sigterm_lets_a_stream_finish(start: Callable[..., Server]) -> None:
    # K3: shutdown cut streams, or waited for ever.
    server = start("-c", "4096")
    events = server.stream("/completion", {"prompt": "x", "n_predict": 1500, "ignore_eos": True})
    next(events)
    server.process.send_signal(signal.SIGTERM)
    rest = list(events)
    assert rest[-1]["stop"] is True and rest[-1]["tokens_predicted"] == 1500
    assert server.process.wait(PATIENCE_S) == 0
    with pytest.raises(requests.ConnectionError):
        server.get("/health")


def test_a_second_signal_ends_streams_with_an_error_event(start: Callable[..., Server]) -> None:
    server = start("-c", "8192")
    events = server.stream("/completion", {"prompt": "x", "n_predict": 8000, "ignore_eos": True})
    next(events)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: not can_connect(server), "the port to be closed")
    server.process.send_signal(signal.SIGTERM)
    last = list(events)[-1]
    assert last["error"]["type"] == "unavailable_error"
    assert server.process.wait(PATIENCE_S) == 0


def test_the_grace_has_an_end(start: Callable[..., Server]) -> None:
    server = start("-c", "8192", "--shutdown-timeout", "1")
    sock = raw_post(server, "/completion", {"prompt": "x", "n_predict": -1, "ignore_eos": True})
    wait_until(lambda: not server.is_idle(), "the request to run")
    assert server.stop() == 0
    assert b"503" in sock.recv(100)
    sock.close()


def test_a_long_prompt_does_not_hold_up_a_stop(start: Callable[..., Server]) -> None:
    # K3: shutdown waited for a minutes-long batch.
    server = start("-c", "8192", "-b", "8", "-ub", "8", "--shutdown-timeout", "0")
    sock = raw_post(server, "/completion", {"prompt": [50] * 8000, "n_predict": 1})
    wait_until(lambda: not server.is_idle(), "the prompt to begin")
    assert server.stop() == 0
    assert b"503" in sock.recv(100)
    sock.close()


def can_connect(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=1).close()
        return True
    except OSError:
        return False


def test_a_full_queue_is_429_with_retry_after(start: Callable[..., Server]) -> None:
    server = start("-np", "1", "--queue-max", "3", "--metrics")
    body = {"prompt": "x", "n_predict": 7000, "ignore_eos": True}
    runner = raw_post(server, "/completion", body)
    wait_until(lambda: not server.is_idle(), "the first to run")
    waiting = [raw_post(server, "/completion", body) for _ in range(3)]
    wait_until(lambda: "requests_deferred 3\n" in server.get("/metrics").text, "three waiting")
    refused = server.post("/completion", body)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.json()["error"]["code"] == 429
    for sock in (runner, *waiting):
        sock.close()
    server.check_clean()
    server.check_alive()


def test_old_requests_do_not_starve(start: Callable[..., Server]) -> None:
    # K5: a deferred request was put at the back again each time.
    server = start("-np", "1")
    body = {"prompt": "x", "n_predict": 2000, "ignore_eos": True}
    first = raw_post(server, "/completion", body)
    wait_until(lambda: not server.is_idle(), "the first to run")
    socks = []
    for i in range(6):
        socks.append(raw_post(server, "/completion", {"prompt": f"number {i}", "n_predict": 5}))
    order = []
    while len(order) < 6:
        for i, sock in enumerate(socks):
            if i in order:
                continue
            sock.settimeout(0.01)
            try:
                if sock.recv(10):
                    order.append(i)
            except TimeoutError:
                pass
    assert sorted(order) == list(range(6))
    for sock in (first, *socks):
        sock.close()


def tunables(server: Server) -> str:
    variables = Path(f"/proc/{server.process.pid}/environ").read_text().split("\0")
    return next((v for v in variables if v.startswith("GLIBC_TUNABLES=")), "")


def test_large_allocations_lie_on_huge_pages(start: Callable[..., Server]) -> None:
    # One process in three decoded at half speed: its weights lay in small pages.
    kernel = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    wanted = "[madvise]" in kernel
    assert ("glibc.malloc.hugetlb=1" in tunables(start())) == wanted
    beside = start(env={"GLIBC_TUNABLES": "glibc.malloc.check=0"})
    assert ("glibc.malloc.hugetlb=1" in tunables(beside)) == wanted
    assert "hugetlb" not in tunables(start("--no-huge-pages"))
    theirs = start(env={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"})
    assert tunables(theirs) == "GLIBC_TUNABLES=glibc.malloc.hugetlb=0"
    theirs.check_alive()
