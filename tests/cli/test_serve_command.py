"""What `mt serve` refuses before it begins."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path
from typing import Any

import pytest

from mt.extras import install
from tests.translating import mt


def test_without_its_extra_it_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def found(name: str, *rest: Any) -> Any:
        return None if name == "uvicorn" else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    ended = mt("serve", "--model", "runs/demo")
    assert (ended.code, ended.err) == (2, [f"mt serve needs an extra: {install('serve')}"])


def test_a_port_that_is_taken_is_told_before_the_model_is_loaded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = mt("serve", "--model", "nowhere", "--port", str(port))
    assert ended.code == 2
    assert len(ended.err) == 1
    assert f"--port {port}: cannot listen there" in ended.err[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--model", "nowhere", "--port", "0"], "nowhere"),
        (["--model", "nowhere", "--timeout", "0"], "--timeout: give a number above 0"),
        (["--model", "nowhere", "--timeout", "nan"], "--timeout: give a number above 0"),
        (["--model", "nowhere", "--drain", "inf"], "--drain: give a number above 0"),
        (["--model", "nowhere", "--batch-wait", "1e20"], "--batch-wait: give a number above 0"),
        (["--model", "nowhere", "--cors", "null"], "--cors http://localhost:8080"),
        (["--model", "nowhere", "--cors", "example.org"], "such as https://example.org"),
        (["--model", "nowhere", "--allowed-host", "mt.example.org:80"], "such as mt.example.org"),
        (["--model", "nowhere", "--host", "no such host"], "--host no such host"),
        (["--model", "nowhere", "--api-key-file", "nowhere.txt"], "--api-key-file nowhere.txt: cannot be read"),
        (["runs/demo", "--model", "nowhere"], "--model runs/demo"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(words: list[str], says: str) -> None:
    ended = mt("serve", *words)
    assert ended.code == 2
    assert len(ended.err) == 1
    assert says in ended.err[0]


def test_a_key_that_is_empty_is_no_open_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MT_API_KEY", "")
    ended = mt("serve", "--model", "nowhere")
    assert (ended.code, ended.err) == (2, ["MT_API_KEY: is empty; unset it, or give it a key"])


def test_a_file_of_keys_has_some(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# none yet\n\n", encoding="utf-8")
    ended = mt("serve", "--model", "nowhere", "--api-key-file", keys)
    assert (ended.code, ended.err) == (2, [f"--api-key-file {keys}: has no key; write one a line"])
