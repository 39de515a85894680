from __future__ import annotations

import json
import logging

import pytest

from mt.errors import MTError
from mt.serve.access_log import Formatter, LogFormat, Note
from mt.serve.answering import Model
from mt.serve.limits import Limits
from tests.serve.serving import asking

SECRET = "secretword"


def line(how: LogFormat, note: Note | None = None, message: str = "request") -> str:
    record = logging.makeLogRecord({"msg": message, "levelno": logging.INFO, "levelname": "INFO", "note": note})
    return Formatter(how).format(record)


def test_a_request_is_a_line_of_json() -> None:
    note = Note("1f", "::1", "POST", "/v1/translate", 200, 0.25, 12, 2)
    found = json.loads(line("json", note))
    assert found.pop("time").endswith("Z")
    assert found == {
        **{"level": "info", "event": "request", "id": "1f", "client": "::1", "method": "POST", "route": "/v1/translate"},
        **{"status": 200, "seconds": 0.25, "characters": 12, "sentences": 2},
    }


@pytest.mark.parametrize("how", ["text", "json"])
def test_nothing_that_clients_send_begins_a_line(how: LogFormat) -> None:
    note = Note("1f", "::1", "GET\r\n", "-", 404, 0.1, error="a\nb\x1b[31m\u2028c")
    found = line(how, note)
    assert found.isprintable()
    assert "404" in found


def test_no_text_and_no_path_is_told(model: Model, caplog: pytest.LogCaptureFixture) -> None:
    ask = asking(model)
    logger = logging.getLogger("mt.serve")
    propagates, logger.propagate = logger.propagate, True
    try:
        with caplog.at_level(logging.INFO, "mt.serve"):
            ask("POST", "/v1/translate", json={"text": SECRET, "prefix": SECRET, "glossary": [[SECRET, SECRET]]})
            ask("POST", "/v1/translate", json={"text": SECRET, SECRET: SECRET})
            ask("POST", "/v1/translate", json={"text": SECRET, "target": SECRET})
            ask("POST", "/v1/translate", content=f'{{"{SECRET}'.encode(), headers={"content-type": "application/json"})
            ask("POST", f"/v1/file?name={SECRET}.txt", content=SECRET.encode())
            ask("POST", f"/v1/file?name={SECRET}.{SECRET}", content=SECRET.encode())
            ask("GET", f"/{SECRET}?{SECRET}")
    finally:
        logger.propagate = propagates
    for how in ("text", "json"):
        lines = [Formatter(how).format(record) for record in caplog.records]  # type: ignore[arg-type]
        assert len(lines) == 7
        assert SECRET not in "".join(lines)


@pytest.mark.parametrize(
    ("name", "value", "called"),
    [("characters", 0, "characters"), ("queue", -1, "queue"), ("seconds", 0, "--timeout"), ("drain_seconds", 1e7, "--drain")],
)
def test_limits_make_sense(name: str, value: float, called: str) -> None:
    with pytest.raises(MTError, match=f"^{called}: give a number above 0"):
        Limits(**{name: value})
