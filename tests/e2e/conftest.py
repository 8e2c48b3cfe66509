"""Fixtures: servers and models."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sdk
from server import MAKE_MODEL, TINY, Server


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a tiny random model of a memory kind, once a session."""
    folder = tmp_path_factory.mktemp("models")

    def make(kind: str) -> Path:
        path = folder / f"{kind}.gguf"
        if not path.exists():
            subprocess.run([MAKE_MODEL, kind, path, "--tokenizer", TINY], check=True,
                           capture_output=True)
        return path

    return make


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Callable[..., Server]]:
    """Starts servers that end with the test."""
    servers: list[Server] = []

    def start_one(*args: str, **kwargs: object) -> Server:
        servers.append(Server(*args, **kwargs))  # type: ignore[arg-type]
        return servers[-1]

    yield start_one
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """One server for all tests of a module; see `server`."""
    one = Server("-c", "4096", "-np", "8", "--metrics")
    yield one
    assert one.stop() == 0, "".join(one.errors)


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    """The module's server, which must be alive and clean after the test."""
    yield shared
    shared.check_clean()
    shared.check_alive()


@pytest.fixture(scope="session")
def sdk_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of tests/sdk, ready to run."""
    return sdk.prepare(tmp_path_factory.mktemp("sdk"))
