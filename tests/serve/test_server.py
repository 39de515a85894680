"""A real server on a socket: what is slow, what is too large, who goes away, and how it ends."""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mt.decode.translation import Translation
from mt.search.step import Hypothesis
from mt.serve.answering import Answer, Ask, Model
from mt.serve.details import NONE
from mt.serve.limits import Limits
from mt.serve.queue import Line
from tests import toy
from tests.serve.serving import running, served

LINES = toy.sentences(3)
MEBIBYTE = 2**20


class Gated(Model):
    """A model whose searches wait for a gate, and are counted."""

    def __init__(self, model: Model) -> None:
        vars(self).update(copy.copy(vars(model)))
        self.gate, self.begun = threading.Event(), threading.Event()
        self.lines: list[str] = []

    def search(self, ask: Ask, lines: Sequence[Line]) -> list[Answer]:
        self.lines += [line.text for line in lines]
        self.begun.set()
        assert self.gate.wait(30)
        return super().search(ask, lines)


@pytest.fixture
def gated(model: Model) -> Iterator[Gated]:
    found = Gated(model)
    yield found
    found.gate.set()


@contextmanager
def connected(address: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=20) as connection:
        yield connection


def said(connection: socket.socket) -> bytes:
    """All that a connection says until it is closed."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def head(length: int | str, *more: str, path: str = "/v1/translate") -> bytes:
    size = "transfer-encoding: chunked" if length == "chunked" else f"content-length: {length}"
    lines = [f"POST {path} HTTP/1.1", "host: localhost", "content-type: application/json", size, *more]
    return "\r\n".join([*lines, "", ""]).encode()


def post(address: tuple[str, int], body: Any, **named: Any) -> httpx2.Response:
    return httpx2.post(f"http://{address[0]}:{address[1]}/v1/translate", json=body, timeout=30, verify=False, **named)


# ── too much, too slow ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("chunked", [False, True])
def test_ten_megabytes_are_refused_and_the_next_request_is_answered(model: Model, chunked: bool) -> None:
    body = json.dumps({"text": "x" * 10 * MEBIBYTE}).encode()
    content = iter([body[i : i + 65536] for i in range(0, len(body), 65536)]) if chunked else body
    with served(model) as (host, port), httpx2.Client(base_url=f"http://{host}:{port}", timeout=30) as client:
        began = time.monotonic()
        answer = client.post("/v1/translate", content=content, headers={"content-type": "application/json"})
        assert (answer.status_code, "at a time at most" in answer.json()["error"]) == (413, True)
        assert time.monotonic() - began < 10
        assert client.post("/v1/translate", json={"text": LINES[0]}).status_code == 200


def test_who_asks_first_whether_to_send_is_told_at_once(model: Model) -> None:
    with served(model) as address, connected(address) as connection:
        connection.sendall(head(10**9, "expect: 100-continue"))
        assert said(connection).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("length", ["-1", "1e3", "9" * 5000])
def test_a_length_that_is_none_is_refused(model: Model, length: str) -> None:
    with served(model) as address, connected(address) as connection:
        connection.sendall(head(length))
        assert re.match(rb"HTTP/1.1 4(00|13) ", said(connection))


def test_a_body_that_does_not_come_is_not_waited_for(model: Model) -> None:
    with served(model, Limits(body_seconds=0.3)) as address, connected(address) as connection:
        connection.sendall(head(100) + b'{"te')
        answer = said(connection)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"did not come within 0.3 seconds" in answer


def test_drops_of_a_body_do_not_prolong_its_time(model: Model) -> None:
    with served(model, Limits(body_seconds=0.5)) as address, connected(address) as connection:
        connection.sendall(head(1000))
        began = time.monotonic()
        with suppress(OSError):  # closed while we send
            while time.monotonic() - began < 10:
                connection.sendall(b" ")
                time.sleep(0.05)
        assert time.monotonic() - began < 8


@pytest.mark.parametrize("begun", [b"", b"POST /v1/tr", b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\nGET /"])
def test_a_head_that_does_not_come_is_not_waited_for(model: Model, begun: bytes) -> None:
    with served(model, Limits(header_seconds=0.3)) as address, connected(address) as connection:
        connection.sendall(begun)
        began = time.monotonic()
        said(connection)
        assert time.monotonic() - began < 5


def test_a_head_is_no_longer_than_it_may_be(model: Model) -> None:
    with served(model) as address, connected(address) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 100_000)
        answer = said(connection)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"its head has more than" in answer


class Stuffed(Model):
    """A model whose translations are more than anything between two programs holds."""

    def __init__(self, model: Model) -> None:
        vars(self).update(copy.copy(vars(model)))

    def search(self, _: Ask, lines: Sequence[Line]) -> list[Answer]:  # type: ignore[override]
        found = Hypothesis([], -1.0, -1.0, truncated=False)
        return [Answer(Translation(line.text, [("x" * 8 * MEBIBYTE, found)]), NONE) for line in lines]


@contextmanager
def deaf(address: tuple[str, int]) -> Iterator[socket.socket]:
    """Whoever asks and does not read the answer."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(address)
        body = json.dumps({"text": LINES[0]}).encode()
        connection.sendall(head(len(body)) + body)
        assert connection.recv(1)
        yield connection


def test_an_answer_that_nobody_reads_is_not_kept(model: Model) -> None:
    with served(Stuffed(model), Limits(answer_seconds=0.2)) as address, deaf(address) as connection:
        time.sleep(0.6)
        assert len(said(connection)) < 8 * MEBIBYTE


def test_the_end_does_not_wait_for_who_does_not_read(
    model: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mt.serve.server.LAST_SECONDS", 0.2)
    with ExitStack() as afterwards:
        with served(Stuffed(model)) as address:
            afterwards.enter_context(deaf(address))
            began = time.monotonic()
        assert time.monotonic() - began < 5
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_more_connections_than_there_may_be_are_closed(model: Model) -> None:
    with served(model, Limits(connections=2)) as address, connected(address), connected(address), connected(address) as third:
        third.settimeout(5)
        with suppress(ConnectionResetError):
            assert third.recv(1) == b""


def test_what_is_no_http_does_no_harm(model: Model) -> None:
    with served(model) as address:
        with connected(address) as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00 hello\r\n\r\n")
            answer = said(connection)
            assert answer.startswith(b"HTTP/1.1 400")
            assert list(json.loads(answer.partition(b"\r\n\r\n")[2])) == ["error"]
        assert post(address, {"text": LINES[0]}).status_code == 200


# ── who asks, and for what ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost/v1/translate", "localhost", 200),
        ("HTTP://127.0.0.1:80/v1/translate?x=1", "localhost", 200),
        ("http://localhost/v1/translate", "evil.example", 200),
        ("http://evil.example/v1/translate", "localhost", 403),
        ("http://localhost@evil.example/v1/translate", "localhost", 403),
        ("http:///v1/translate", "localhost", 403),
        ("http://localhost", "localhost", 405),
    ],
)
def test_a_target_may_name_the_server_and_is_believed(model: Model, target: str, host: str, status: int) -> None:
    body = json.dumps({"text": LINES[0]}).encode()
    with served(model) as address, connected(address) as connection:
        connection.sendall(head(len(body), "connection: close", path=target).replace(b"localhost\r\n", host.encode() + b"\r\n") + body)
        assert said(connection).startswith(b"HTTP/1.1 %d " % status)


def test_keys_are_shown_one_way_or_another_and_whole(model: Model) -> None:
    long = "k" * 64
    right = [
        *("authorization: Bearer key", "AUTHORIZATION: bearer   key ", f"x-api-key: {long}"),
        "x-api-key: key\r\nauthorization: Basic eDp5",
    ]
    wrong = [
        *("", "x-api-key:", "x-api-key: ke", "x-api-key: keyk", "x-api-key: KEY", f"x-api-key: key, {long}", f"x-api-key: {long[1:]}"),
        *("authorization: key", "authorization: Bearer", "authorization: Basic key", "x-api-key: schlüssel"),
        *(f"x-api-key: {'k' * 15_000}", "x-api-key: no\r\nx-api-key: key", "x-api-key: no\r\nauthorization: Bearer key"),
    ]
    body = json.dumps({"text": LINES[0]}).encode()

    def status(shown: str, path: str = "/v1/translate", sent: bytes = body) -> int:
        with connected(address) as connection:
            connection.sendall(head(len(sent), "connection: close", *([shown] if shown else []), path=path) + sent)
            return int(said(connection)[9:12])

    with served(model, keys=["key", long]) as address:
        assert {shown: status(shown) for shown in right} == dict.fromkeys(right, 200)
        assert {shown: status(shown) for shown in wrong} == dict.fromkeys(wrong, 401)
        assert status("", path="/v1/translate?api_key=key") == 401  # addresses end up in logs
        assert status("", sent=json.dumps({"text": "x", "api_key": "key"}).encode()) == 401


def test_who_has_no_key_is_told_so_before_the_body_and_may_ask_again(model: Model) -> None:
    body = json.dumps({"text": LINES[0]}).encode()
    with served(model, keys=["key"]) as address, connected(address) as connection:
        connection.sendall(head(200_000) + b"x" * 200_000 + head(len(body), "x-api-key: key", "connection: close") + body)
        assert re.findall(rb"HTTP/1.1 (\d+)", said(connection)) == [b"401", b"200"]


# ── many at a time ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_requests_that_come_together_are_one_batch_with_the_answers_of_each(model: Model) -> None:
    expected = [one.text for one in model.translator.translate(LINES)]
    with served(model, Limits(batch_seconds=0.3)) as address, ThreadPoolExecutor(len(LINES)) as pool:
        answers = list(pool.map(lambda line: post(address, {"text": line}).json(), LINES))
        text = httpx2.get(f"http://{address[0]}:{address[1]}/metrics", verify=False).text
    assert [one["translations"][0]["text"] for one in answers] == expected
    assert "mt_batch_sentences_count 1.0" in text


def test_too_many_are_refused_quickly_and_then_taken_again(gated: Gated) -> None:
    with served(gated, Limits(queue=4)) as address, ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(post, address, {"text": LINES[0]}) for _ in range(4)]
        wait_for_queue(address, 4)
        began = time.monotonic()
        more = list(pool.map(lambda _: post(address, {"text": LINES[0]}), range(8)))
        assert time.monotonic() - began < 5
        assert {(one.status_code, int(one.headers["retry-after"]) >= 1) for one in more} == {(503, True)}
        gated.gate.set()
        assert {one.result().status_code for one in waiting} == {200}
        assert post(address, {"text": LINES[0]}).status_code == 200


def test_one_address_has_its_share(gated: Gated) -> None:
    with served(gated, Limits(per_client=1)) as address, ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, address, {"text": LINES[0]})
        assert gated.begun.wait(20)
        second = post(address, {"text": LINES[1]})
        assert (second.status_code, second.headers["retry-after"]) == (429, "1")
        gated.gate.set()
        assert first.result().status_code == 200


def test_who_goes_away_is_not_worked_for(gated: Gated) -> None:
    with served(gated) as address, ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, address, {"text": LINES[0]})
        assert gated.begun.wait(20)
        body = json.dumps({"text": LINES[1]}).encode()
        with connected(address) as connection:
            connection.sendall(head(len(body)) + body)
            wait_for_queue(address, 2)
        wait_for_queue(address, 1)
        gated.gate.set()
        first.result()
        assert post(address, {"text": LINES[2]}).status_code == 200
        assert gated.lines == [LINES[0], LINES[2]]


def test_asked_twice_to_end_it_goes_at_once_and_says_so(gated: Gated, caplog: pytest.LogCaptureFixture) -> None:
    with running(gated) as (server, address), ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, address, {"text": LINES[0]})
        assert gated.begun.wait(20)
        server.handle_exit(signal.SIGTERM, None)
        server.handle_exit(signal.SIGTERM, None)
        answer = first.result(10)
        assert (answer.status_code, "ending" in answer.json()["error"]) == (503, True)
        gated.gate.set()
        assert server.state.abandon(20)  # or its thread would be cut down with the tests
    assert server.code == 128 + signal.SIGTERM
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def queued(address: tuple[str, int]) -> int:
    """Requests that are translated or wait."""
    count: int = httpx2.get(f"http://{address[0]}:{address[1]}/health", verify=False).json()["queue"]
    return count


def wait_for_queue(address: tuple[str, int], count: int) -> None:
    until = time.monotonic() + 20
    while queued(address) != count:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_request_has_its_time(gated: Gated) -> None:
    with served(gated, Limits(seconds=0.2)) as address:
        answer = post(address, {"text": LINES[0]})
        assert (answer.status_code, "0.2 seconds" in answer.json()["error"]) == (504, True)
        gated.gate.set()


def test_requests_one_after_the_other_share_a_connection(model: Model) -> None:
    with served(model) as address, connected(address) as connection:
        body = json.dumps({"text": LINES[0]}).encode()
        connection.sendall((head(len(body)) + body) * 2 + b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert said(connection).count(b"HTTP/1.1 200 OK") == 3


# ── the whole program ───────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def program(run: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int], list[str]]]:
    """`mt serve` in a process of its own, its address, and what it says on stderr."""
    command = [sys.executable, "-m", "mt", "serve", "--model", str(run), "--port", "0", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, encoding="utf-8", env=environment) as process:
        try:
            assert process.stderr
            assert process.stderr.readline() == f"loading {run} …\n"
            lines = [process.stderr.readline()]
            address = re.search(r"at http://([^:]+):(\d+);", lines[0])
            assert address, lines[0] + process.stderr.read()
            reading = threading.Thread(target=lambda: lines.extend(process.stderr or ()))
            reading.start()
            yield process, (address[1], int(address[2])), lines
            process.wait(30)
            reading.join(10)
        finally:
            process.kill()


def test_asked_to_end_it_finishes_what_is_begun(run: Path) -> None:
    many = toy.sentences(60, seed=7)
    with program(run, "--log-format", "json", "--max-batch", "4") as (process, address, lines):
        with ThreadPoolExecutor(1) as pool, httpx2.Client(base_url=f"http://{address[0]}:{address[1]}", timeout=60, verify=False) as client:
            first = pool.submit(post, address, {"text": many, "beam": 1})
            wait_for_queue(address, 1)
            process.send_signal(signal.SIGTERM)
            health = client.get("/health")
            while health.status_code == 200:
                health = client.get("/health")
            assert health.json()["status"] == "draining"
            late = client.post("/v1/translate", json={"text": "late"})
            assert (late.status_code, "ending" in late.json()["error"]) == (503, True)
            assert len(first.result().json()["translations"]) == len(many)
        assert process.wait(30) == 0
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(address, timeout=5)
    records = [json.loads(line) for line in lines[1:]]
    asked = [record for record in records if record.get("route") == "/v1/translate"]
    assert records[-1]["message"] == "ended; all requests are answered"
    assert [(one["status"], one["sentences"]) for one in asked if one["status"] == 200] == [(200, len(many))]
    assert not any(many[0] in line for line in lines)
