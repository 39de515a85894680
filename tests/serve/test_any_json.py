"""Whatever JSON comes, it is answered, or refused in a line; never a fault."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Sequence
from typing import Any

import httpx2
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.decode.translation import Following, Translation
from mt.search.step import Hypothesis
from mt.serve.answering import Answer, Ask, Model
from mt.serve.api import application
from mt.serve.details import NONE
from mt.serve.limits import Limits
from mt.serve.queue import Line
from tests.serve.serving import client_of

TEXT = st.text(max_size=20) | st.sampled_from(["\x00", "\ud800", "One. Two.\n\nThree.", "<b>x</i>", "<script>", "de", "html"])
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
ANY = st.recursive(SIMPLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2), max_leaves=5)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXT | st.lists(TEXT, max_size=3),
    "q": TEXT | st.lists(TEXT, max_size=3),
    "target": st.just("de"),
    "source": st.sampled_from(["en", "auto"]),
    "format": st.sampled_from(["text", "html"]),
    "n_best": st.integers(0, 30),
    "n": st.integers(0, 30),
    "alternatives": st.integers(0, 30),
    "beam": st.integers(0, 30),
    "length_penalty": st.floats(0, 3),
    "glossary": st.lists(st.tuples(TEXT, TEXT), max_size=2),
    "prefix": TEXT,
    "details": st.booleans(),
}
BODIES = st.fixed_dictionaries({}, optional={name: likely | ANY for name, likely in LIKELY.items()}) | ANY
PATHS = ("/v1/translate", "/v1/alternatives", "/translate", "/detect")


@settings(max_examples=15)
@given(bodies=st.lists(BODIES, min_size=4, max_size=4))
def test_any_json_is_answered(model: Model, bodies: list[Any]) -> None:
    echoing = copy.copy(model)

    def echo(_: Ask, lines: Sequence[Line]) -> list[Answer]:
        found, next_ = Hypothesis([], -1.0, -1.0, truncated=False), Following("x", 0.5)
        return [Answer(Translation(line.text, [(line.prefix + line.text, found)], following=[next_]), NONE) for line in lines]

    echoing.search = echo  # type: ignore[method-assign]

    async def answers() -> list[tuple[Any, httpx2.Response]]:
        async with client_of(application(echoing, Limits(seconds=5))) as client:
            asked = [(path, body) for body in bodies for path in PATHS]
            headers = {"content-type": "application/json"}
            return [(one, await client.post(one[0], content=json.dumps(one[1]).encode(), headers=headers)) for one in asked]

    for asked, answer in asyncio.run(answers()):
        assert answer.status_code in (200, 400, 413, 422), (asked, answer.text)
        assert answer.content.decode("utf-8")
        if answer.status_code != 200:
            assert list(answer.json()) == ["error"], asked
            assert "\n" not in answer.json()["error"]
