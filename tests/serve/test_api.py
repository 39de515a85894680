"""The routes, without a network."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mt.decode.translation import Translation
from mt.search.step import Hypothesis
from mt.serve.answering import Answer, Model
from mt.serve.api import application
from mt.serve.details import NONE
from mt.serve.limits import MOST_SAID, Limits
from tests import toy
from tests.serve.serving import Asking, asking, client_of, lively_model, run_async

LINES = toy.sentences(3)


def translations(ask: Asking, text: str | list[str], **asked: Any) -> list[dict[str, Any]]:
    answer = ask("POST", "/v1/translate", json={"text": text, **asked})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["translations"]
    return found


def refused(ask: Asking, body: Any, *, path: str = "/v1/translate") -> tuple[int, str]:
    sent = {"content": body, "headers": {"content-type": "application/json"}} if isinstance(body, bytes) else {"json": body}
    answer = ask("POST", path, **sent)
    assert list(answer.json()) == ["error"]
    assert "\n" not in answer.json()["error"]
    return answer.status_code, answer.json()["error"]


# ── texts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sentences_are_translated_as_the_translator_does(ask: Asking, model: Model) -> None:
    expected = [one.text for one in model.translator.translate(LINES)]
    assert [one["text"] for one in translations(ask, LINES)] == expected
    assert [one["text"] for one in translations(ask, LINES[0])] == expected[:1]


def test_paragraphs_and_sentences_are_translated_one_by_one_and_kept_apart(ask: Asking, model: Model) -> None:
    a, b, c = (line.capitalize() for line in LINES)
    x, y, z = (one.text for one in model.translator.translate([a, b, c]))
    (found,) = translations(ask, f"{a} {b}\n\n  {c}\n")
    assert found["text"] == f"{x} {y}\n\n  {z}\n"
    assert found["hypotheses"] == []


def test_a_blank_text_stays_blank(ask: Asking) -> None:
    assert [one["text"] for one in translations(ask, ["", " \n\t\n", LINES[0]])][:2] == ["", " \n\t\n"]


def test_hypotheses_are_those_of_the_search(ask: Asking, model: Model) -> None:
    (found,) = translations(ask, f" {LINES[0]}\n", n_best=3, beam=4, length_penalty=0.5)
    settings = model.ask(target=None, beam=4, n_best=3, length_penalty=0.5, limits=Limits()).search
    (expected,) = model.translator.translate(LINES[:1], settings=settings)
    assert [one["text"] for one in found["hypotheses"]] == [f" {text}\n" for text, _ in expected.hypotheses]
    assert [one["log_prob"] for one in found["hypotheses"]] == pytest.approx([one.log_prob for _, one in expected.hypotheses], abs=1e-4)


def test_more_translations_than_the_beam_widen_it(ask: Asking) -> None:
    (found,) = translations(ask, LINES[0], n_best=8)
    assert len(found["hypotheses"]) == 8


def test_details_say_what_each_piece_is_and_where(ask: Asking) -> None:
    text = f"{LINES[0].capitalize()}  {LINES[1].capitalize()}\n"
    (found,) = translations(ask, text, details=True)
    sentences = found["sentences"]
    assert "".join(one["before"] + one["source"] for one in sentences) + found["after"] == text
    assert "".join(one["before"] + one["text"] for one in sentences) + found["after"] == found["text"]
    for one in sentences:
        for tokens, side in (one["tokens"], one["text"]), (one["source_tokens"], one["source"]):
            assert all(side[token["start"] : token["end"]] == token["text"] for token in tokens)
            assert "".join(token["text"] for token in tokens) == side.replace(" ", "")
        known = sum(math.log(token["probability"]) for token in one["tokens"])
        assert known >= one["log_prob"] - 1e-4  # the end is no token
        assert {target for _, target, _ in one["alignment"]} == set(range(len(one["tokens"])))
        assert all(0 <= source < len(one["source_tokens"]) and 0 < weight <= 1 for source, _, weight in one["alignment"])


def test_details_of_a_sentence_in_parts_have_the_places_of_the_whole(tmp_path: Path) -> None:
    ask = asking(lively_model(tmp_path, "data.max_pieces=8"))
    line = " ".join(LINES).replace(".", ",")
    (found,) = translations(ask, line, details=True)
    (one,) = found["sentences"]
    assert "split" in found["flags"]
    for tokens, side in (one["tokens"], one["text"]), (one["source_tokens"], one["source"]):
        assert all(side[token["start"] : token["end"]] == token["text"] for token in tokens)
        assert "".join(token["text"] for token in tokens) == side.replace(" ", "")
    assert {target for _, target, _ in one["alignment"]} == set(range(len(one["tokens"])))


def test_a_translation_begins_with_the_prefix_and_has_the_terms(ask: Asking) -> None:
    term = toy.translation(LINES[1].split()[0])
    (found,) = translations(ask, LINES[0], prefix="fonen dida", glossary=[[LINES[0].split()[0], term]])
    assert found["text"].startswith("fonen dida")
    assert term in found["text"]
    assert term not in translations(ask, LINES[0], prefix="fonen dida")[0]["text"]


def test_a_prefix_goes_with_one_sentence(ask: Asking) -> None:
    status, error = refused(ask, {"text": "One here. Two here.", "prefix": "x"})
    assert (status, error.partition(":")[0]) == (422, "prefix")


def test_html_keeps_its_tags(ask: Asking, model: Model) -> None:
    (found,) = translations(ask, f"<p class=x>{LINES[0]}</p>\n<script>a < b</script>", format="html")
    (expected,) = model.translator.translate(LINES[:1])
    assert found["text"] == f"<p class=x>{expected.text}</p>\n<script>a < b</script>"


def test_a_sentence_with_tags_is_translated_as_one_without(ask: Asking) -> None:
    first, *rest = LINES[0].split()
    (plain,) = translations(ask, LINES[0])
    (found,) = translations(ask, f"<p>{first} <a href='x'>{' '.join(rest)}</a></p>", format="html")
    assert found["text"].count("<a href='x'>") == found["text"].count("</a>") == 1
    assert found["text"].replace("<a href='x'>", "").replace("</a>", "") == f"<p>{plain['text']}</p>"


def test_markup_in_a_translation_is_text(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "<script>alert(1)</script>"

    def evil(_: Any, lines: Any) -> list[Answer]:
        return [Answer(Translation(line.text, [(script, Hypothesis([], -1.0, -1.0, truncated=False))]), NONE) for line in lines]

    monkeypatch.setattr(model, "search", evil)
    (found,) = translations(asking(model), "<p>One <b>two</b></p>", format="html")
    assert script not in found["text"]
    assert found["text"].count("<b>") == 1


@pytest.mark.parametrize("text", ["a\x00b\x07\x1b[31m", "\ud800", "\U0010ffff\ufeff\u202e", "\x85\u2028\x0b", "\u2581", "</s><unk>"])
def test_no_character_does_harm(ask: Asking, text: str) -> None:
    answer = ask("POST", "/v1/translate", content=json.dumps({"text": text}).encode(), headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert "\ud800" not in answer.json()["translations"][0]["text"]


# ── what may come next ──────────────────────────────────────────────────────────────────────────────────────────────


def test_alternatives_are_those_of_the_translator(ask: Asking, model: Model) -> None:
    prefix = model.translator.translate(LINES[:1])[0].text.split()[0]
    answer = ask("POST", "/v1/alternatives", json={"text": LINES[0], "prefix": prefix, "n": 4})
    (expected,) = model.translator.translate(LINES[:1], prefixes=[prefix], alternatives=4)
    found = answer.json()["alternatives"]
    assert [one["text"] for one in found] == [text for text, _ in expected.hypotheses]
    assert [one["probability"] for one in found] == pytest.approx([one.probability for one in expected.following], abs=1e-4)
    for one in found:
        assert one["text"].startswith(prefix)
        assert one["text"].removeprefix(prefix).lstrip().startswith(one["next"])


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b'{"text": ', 400, "not JSON"),
        (b"\xff\xfe", 400, "not UTF-8"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b'{"text": "x", "length_penalty": NaN}', 400, "not JSON"),
        (b'{"text": "x", "beam": ' + b"9" * 5000 + b"}", 400, "not JSON"),
        (b"", 400, "not JSON"),
        (b"[]", 422, "no JSON object"),
        (b"{}", 422, "text: is missing"),
        ({"text": 1}, 422, "text"),
        ({"text": "x", "txet": "x"}, 422, "'txet': unknown key"),
        ({"text": "x", "n_best": 0}, 422, "n_best"),
        ({"text": "x", "n_best": 10**30}, 422, "n_best"),
        ({"text": "x", "beam": 21}, 422, "20 at most"),
        ({"text": "x", "beam": 2, "n_best": 3}, 422, "beam"),
        ({"text": "x", "beam": "3"}, 422, "beam: input should be a valid integer, not a text"),
        ({"text": "x", "beam": True}, 422, "beam: input should be a valid integer, not true or false"),
        ({"text": "x", "n_best": 1.0}, 422, "n_best: input should be a valid integer, not a number with a point"),
        ({"text": "x", "n_best": None}, 422, "n_best: input should be a valid integer, not null"),
        ({"text": "x", "length_penalty": "1"}, 422, "length_penalty: input should be a valid number"),
        ({"text": "x", "details": 1}, 422, "details: input should be a valid boolean"),
        ({"text": ["x", 1]}, 422, "text: entry 2: input should be a valid string, not a number"),
        ({"text": "x", "length_penalty": -1}, 422, "length_penalty"),
        ({"text": "x", "format": "pdf"}, 422, "format"),
        ({"text": "x", "format": "html", "prefix": "y"}, 422, "prefix: goes with plain text"),
        ({"text": "x", "glossary": [["a", " "]]}, 422, "glossary"),
        ({"text": "x", "glossary": [["a", "b"], ["a"]]}, 422, "glossary: entry 2 is no pair"),
        ({"text": "x", "glossary": [["a", "b", "c"]]}, 422, "glossary: entry 1 is no pair"),
        ({"text": "x", "glossary": {"a": "b"}}, 422, "glossary: is no list of pairs"),
        ({"text": "x", "glossary": [["a", "b"]] * 1001}, 413, "glossary: 1001 entries: send 1000 at a time at most"),
        ({"text": "x", "glossary": [1] * 2000}, 413, "glossary: 2000 entries: send 1000"),
        ({"text": [1] * 2000}, 413, "text: 2000 entries: send 1024"),
        ({"beam": "x", **{f"key{n}": 1 for n in range(2000)}}, 422, "'key0': unknown key; there are text, target"),
        ({"text": "x", "target": "fr"}, 422, "translates to de"),
        ({"text": "x", "source": "fr"}, 422, "translates from en"),
        ({"text": "x" * 20_001}, 413, "20000 at a time"),
        ({"text": [""] * 1025}, 413, "text: 1025 entries: send 1024 at a time"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_met_is_told_in_a_line(ask: Asking, body: Any, status: int, says: str) -> None:
    found, error = refused(ask, body)
    assert (found, says in error) == (status, True), error


@pytest.mark.parametrize(
    "more", [{"glossary": [["a" * 10_000, " "]]}, {"k" * 10_000: 1}, {"target": "d" * 10_000}, {"format": "f" * 10_000}], ids=str.__call__
)
def test_a_refusal_does_not_repeat_what_is_long(ask: Asking, more: dict[str, Any]) -> None:
    status, error = refused(ask, {"text": "x", **more})
    assert (status, len(error) <= MOST_SAID + 1) == (422, True)


def test_a_form_is_no_json(ask: Asking) -> None:
    answer = ask("POST", "/v1/translate", data={"text": "x"})
    assert (answer.status_code, "application/json" in answer.json()["error"]) == (415, True)


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "/nothing", 404, "no such page"),
        ("GET", "/v1/translate", 405, "GET is not for this page, POST is"),
        ("GET", "/static/api.py", 404, "no such file"),
    ],
)
def test_what_is_not_there_is_told_as_json(ask: Asking, method: str, path: str, status: int, says: str) -> None:
    answer = ask(method, path)
    assert (answer.status_code, list(answer.json()), says in answer.json()["error"]) == (status, ["error"], True)


@pytest.mark.parametrize(("route", "more"), [("/v1/translate", {}), ("/v1/alternatives", {"n": 2})])
def test_a_prefix_longer_than_any_translation_is_refused(ask: Asking, route: str, more: dict[str, Any]) -> None:
    answer = ask("POST", route, json={"text": "bage .", "prefix": "bage depe " * 300, **more})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("prefix: has ")


def test_whoever_asks_for_the_head_alone_is_answered(ask: Asking) -> None:
    assert [ask("HEAD", path).status_code for path in ("/health", "/", "/health/")] == [200, 200, 404]


def test_a_fault_is_no_secret_and_tells_none(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("what it says")

    monkeypatch.setattr(model, "search", broken)
    with pytest.raises(ZeroDivisionError):  # it goes on to the server's log
        asking(model)("POST", "/v1/translate", json={"text": "x"})


# ── who may ask ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("shown", "status"),
    [({}, 401), ({"authorization": "Bearer two"}, 200), ({"x-api-key": "one"}, 200), ({"x-api-key": "on"}, 401), ({"x-api-key": "ö"}, 401)],
)
def test_where_there_are_keys_one_has_to_be_shown(model: Model, shown: dict[str, str], status: int) -> None:
    ask = asking(model, keys=["one", "two"])
    headers = {name: value.encode() for name, value in shown.items()}
    for path, body in ("/v1/translate", {"text": "x"}), ("/v1/alternatives", {"text": "x"}):
        assert ask("POST", path, json=body, headers=headers).status_code == status
    assert ask("POST", "/v1/file", content=b"x", headers=headers).status_code == status
    assert ask("GET", "/metrics", headers=headers).status_code == status
    for path in "/health", "/v1/info", "/", "/docs", "/openapi.json", "/static/playground.js", "/languages", "/frontend/settings":
        assert ask("GET", path, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:8000", 200), ("evil.example", 403), ("localhost.evil.example", 403), ("[", 403)],
)
def test_a_server_for_this_machine_is_called_by_its_names(ask: Asking, host: str, status: int) -> None:
    assert ask("GET", "/health", headers={"host": host}).status_code == status


def test_who_names_no_host_is_told_so(ask: Asking) -> None:
    answer = ask("GET", "/health", headers={"host": ""})
    assert (answer.status_code, "names no host" in answer.json()["error"]) == (403, True)


def test_a_server_for_others_may_be_called_anything_or_what_it_is_told(model: Model) -> None:
    assert asking(model, hosts=None)("GET", "/health", headers={"host": "mt.example"}).status_code == 200
    assert asking(model, hosts=["mt.example"])("GET", "/health", headers={"host": "MT.example:80"}).status_code == 200


def test_pages_of_other_sites_may_ask_only_if_they_are_named(model: Model) -> None:
    def status(origin: str, **named: Any) -> tuple[int, str | None]:
        answer = asking(model, **named)("POST", "/v1/translate", json={"text": LINES[0]}, headers={"origin": origin})
        return answer.status_code, answer.headers.get("access-control-allow-origin")

    assert status("http://localhost") == (200, None)
    assert status("https://evil.example") == (403, None)
    assert status("null") == (403, None)
    cure = asking(model)("POST", "/v1/translate", json={"text": LINES[0]}, headers={"origin": "null"}).json()["error"]
    assert "--cors http://localhost" in cure
    assert "--cors null" not in cure
    assert status("https://good.example", origins=["https://good.example"]) == (200, "https://good.example")


@pytest.mark.parametrize(
    ("origin", "more", "status", "says"),
    [
        ("https://good.example", {}, 200, ""),
        ("https://evil.example", {}, 403, "start the server with --cors https://evil.example"),
        ("https://good.example", {"access-control-request-method": "PUT"}, 403, "GET and POST"),
        ("https://good.example", {"access-control-request-headers": "x-other"}, 403, "authorization, content-type, x-api-key"),
    ],
)
def test_browsers_ask_beforehand_without_a_key(model: Model, origin: str, more: dict[str, str], status: int, says: str) -> None:
    ask = asking(model, keys=["key"], origins=["https://good.example"])
    usual = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    answer = ask("OPTIONS", "/v1/translate", headers={"origin": origin, **usual, **more})
    assert answer.status_code == status
    if says:
        assert says in answer.json()["error"]
    else:
        assert answer.headers["access-control-allow-origin"] == origin
        assert "authorization" in answer.headers["access-control-allow-headers"]


def test_a_page_elsewhere_can_read_why_its_key_is_refused(model: Model) -> None:
    ask = asking(model, keys=["key"], origins=["https://good.example"])
    answer = ask("POST", "/v1/translate", json={"text": "x"}, headers={"origin": "https://good.example", "x-api-key": "no"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (401, "https://good.example")


# ── what it tells ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_info_names_the_languages_and_limits(model: Model) -> None:
    info = asking(model, Limits(characters=7))("GET", "/v1/info").json()
    assert info["source"] == {"code": "en", "name": "English"}
    assert info["targets"] == [{"code": "de", "name": "German"}]
    assert info["limits"]["characters"] == 7
    assert (info["model"], info["needs_key"]) == ("runs/demo", False)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_ask_nothing_of_others(ask: Asking, path: str) -> None:
    answer = ask("GET", path)
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_docs_and_openapi_know_every_route(ask: Asking) -> None:
    paths = ask("GET", "/openapi.json").json()["paths"]
    page = ask("GET", "/docs").text
    assert {"/v1/translate", "/v1/alternatives", "/v1/file", "/v1/info", "/health", "/translate", "/languages"} <= set(paths)
    for path, methods in paths.items():
        for method in methods:
            assert f"{method.upper()} {path}" in page


def test_metrics_count_requests_and_sentences(model: Model) -> None:
    async def counted() -> str:
        async with client_of(application(model, Limits())) as client:
            for text in LINES:
                await client.post("/v1/translate", json={"text": text})
            await client.post("/v1/translate", json={})
            return (await client.get("/metrics")).text

    text = run_async(counted())
    assert 'mt_requests_total{route="/v1/translate",status="200"} 3.0' in text
    assert 'mt_requests_total{route="/v1/translate",status="422"} 1.0' in text
    assert "mt_sentences_total 3.0" in text
    assert f"mt_characters_total {sum(map(len, LINES))}.0" in text


# ── several target languages ────────────────────────────────────────────────────────────────────────────────────────


def test_of_several_languages_one_is_asked_for(tmp_path: Path) -> None:
    corpora = (
        "data.train=[{src: train.src, tgt: train.trg, langs: {src: en, tgt: de}},"
        " {src: train.src, tgt: train.trg, langs: {src: en, tgt: fr}}]"
    )
    model = lively_model(tmp_path, corpora, "data.dev=none")
    ask = asking(model)
    assert [one["code"] for one in ask("GET", "/v1/info").json()["targets"]] == ["de", "fr"]
    assert refused(ask, {"text": "x"}) == (422, "target: choose one of de, fr")
    for to in "de", "fr":
        (found,) = translations(ask, LINES[0], target=to)
        assert found["text"] == model.translator.translate(LINES[:1], to=to)[0].text
        assert found == translations(ask, LINES[0], target=f"{to}-XX")[0]
