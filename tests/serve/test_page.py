"""The page of the server in a real browser: what one types, clicks and drops, what is shown, and what the page may not do.

The server is real, its model a toy that makes nonsense. Where a test is about the page alone the answers are made up here.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from mt.serve.answering import Model
from tests import toy
from tests.serve.browsing import ARGUMENTS, PROGRAM, Json, Tab, drop, info, sentence, translated, upper
from tests.serve.serving import lively_model, served

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LOOK = Path(__file__).parents[2] / "scripts" / "look.py"
WORDS = "#result .word"
EVIL = "<b>bold</b> <script>document.title = 'gone'</script> <img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return lively_model(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def address(model: Model) -> Iterator[str]:
    with served(model) as (host, port):
        yield f"http://{host}:{port}/"


@pytest.fixture(scope="module")
def source(model: Model) -> str:
    """A sentence of whose translation there is something to click."""
    sources = toy.sentences(40)
    found = model.translator.translate(sources)
    return next(one for one, translation in zip(sources, found, strict=True) if len(set(re.findall("[a-z]+", translation.text))) > 2)


@pytest.fixture
def tab(browser: Any, address: str) -> Iterator[Tab]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    one = Tab(context, address)
    yield one
    context.close()
    assert [text for text in one.said if not text.startswith("Failed to load resource")] == []
    assert {request.url for request in one.requests if not request.url.startswith((address, "data:", f"blob:{address}"))} == set()


# ---- with the real server ------------------------------------------------------------------------------------------


def test_text_is_translated_as_one_types(tab: Tab, source: str) -> None:
    headers: dict[str, dict[str, str]] = {}
    tab.page.on("response", lambda response: headers.setdefault(response.url, response.headers))
    page = tab.open()
    page.locator("#source").press_sequentially(source, delay=2)
    page.wait_for_selector(WORDS)
    tab.state("Translated in")

    body = tab.asked("/v1/translate")[-1]
    assert body["text"] == source
    assert len(tab.asked("/v1/translate")) < len(source)  # not one for each key
    answer = page.request.post(f"{tab.address}v1/translate", data=body).json()
    assert page.locator("#result").inner_text() == answer["translations"][0]["text"] == page.locator("#spoken").text_content()
    assert headers[tab.address]["content-security-policy"] == POLICY
    assert tab.said == []
    assert len({request.url for request in tab.requests if request.url.endswith((".js", ".css"))}) == len(list(page_files("js", "css")))


def test_a_word_gives_way_to_another(tab: Tab, source: str) -> None:
    page = tab.open()
    tab.write(source)
    page.wait_for_selector(WORDS)
    tab.state("Translated in")
    first, words = page.locator("#result").inner_text(), page.locator(WORDS).all_inner_texts()
    page.locator(WORDS).first.click()
    page.wait_for_selector("#menu button")
    items = page.locator("#menu button")
    assert items.count() >= 2
    assert all(re.search(r"\d %", text) for text in items.all_inner_texts())
    other = items.filter(has_not=page.locator("xpath=self::*[@aria-checked='true']")).first
    chosen, rest = other.locator("b").inner_text(), other.locator("i").inner_text()
    assert chosen != words[0]
    other.click()
    page.wait_for_selector("#remarks .chosen")

    second, now = page.locator("#result").inner_text(), page.locator(WORDS).all_inner_texts()
    assert second.startswith(f"{chosen} {rest}".strip())
    assert page.evaluate("document.activeElement.textContent") == chosen
    tab.write(f"{source} {source.upper()}")  # the sentence stands, and so does the choice
    tab.state("Translated in")
    page.wait_for_selector("#result:not(.old)")
    assert page.locator(WORDS).all_inner_texts()[: len(now)] == now
    tab.write(source)
    tab.shows(second)
    page.locator("#remarks button").click()
    tab.shows(first)


def test_a_file_comes_back_translated(tab: Tab, tmp_path: Path) -> None:
    page = tab.open()
    with page.expect_download() as download:
        page.set_input_files("#file", {"name": "two lines.txt", "mimeType": "text/plain", "buffer": b"bade .\nfime .\n"})
    path = tmp_path / "back"
    download.value.save_as(path)
    answer = page.request.post(f"{tab.address}v1/file?name=two%20lines.txt", data=b"bade .\nfime .\n")
    assert path.read_bytes() == answer.body()
    assert path.read_bytes().count(b"\n") == 2
    assert download.value.suggested_filename.endswith(".txt")
    tab.shows(f"Save {download.value.suggested_filename}", within="#file-result")


# ---- text ----------------------------------------------------------------------------------------------------------


def test_markup_is_text(tab: Tab) -> None:
    page = tab.open()
    evil = translated(
        sentence(EVIL, EVIL, flags=[EVIL]),
        hypotheses=[{"text": EVIL, "score": -1.0, "log_prob": -1.0}] * 2,
    )
    tab.answer("v1/translate", lambda _: evil)
    tab.answer("v1/alternatives", lambda _: {"alternatives": [{"text": EVIL, "next": EVIL, "probability": 0.5}]})
    tab.write(EVIL)
    tab.shows(EVIL)
    page.locator("#attention summary").click()
    page.locator(WORDS).first.click()
    page.wait_for_selector("#menu button")
    assert page.locator("main script, main b, main img, #menu script, #menu img").count() == 0
    assert page.locator("#others-list span").inner_text() == EVIL
    assert EVIL in page.locator("#remarks").inner_text()
    assert "gone" not in page.title()


def test_late_answers_are_dropped(tab: Tab) -> None:
    page = tab.page
    page.add_init_script("AbortController.prototype.abort = () => {}")  # a server may have answered before it is told
    tab.open()
    held: list[Any] = []

    def answer(route: Any) -> None:
        if route.request.post_data_json["text"] == "old":
            held.append(route)
        else:
            route.fulfill(json=upper(route.request.post_data_json))

    page.route("**/v1/translate", answer)
    tab.write("old")
    tab.state("Translating")
    while not held:
        page.wait_for_timeout(10)
    tab.write("new")
    tab.shows("NEW")
    with page.expect_response(lambda response: "OLD" in response.text()):
        held[0].fulfill(json=upper({"text": "old"}))
    page.wait_for_timeout(50)
    tab.shows("NEW")


def test_what_is_under_way_is_given_up_for_what_is_newer(tab: Tab) -> None:
    page = tab.open()
    ended: list[str] = []
    page.on("requestfailed", lambda request: ended.append(request.post_data_json["text"]))
    page.route(
        "**/v1/translate",
        lambda route: None if route.request.post_data_json["text"] == "old" else route.fulfill(json=upper({"text": "new"})),
    )
    with page.expect_request("**/v1/translate"):
        tab.write("old")
    tab.write("new")
    tab.shows("NEW")
    assert ended == ["old"]


def test_places_are_those_of_characters(tab: Tab) -> None:
    page = tab.open()
    tab.answer("v1/translate", lambda _: translated(sentence("👩‍🔧 𝒳 ok", "👍🏽 𝔄bc ende"), sentence("b c", "B C", before="\n\n")))
    tab.write("👩‍🔧 𝒳 ok\n\nb c")
    page.wait_for_selector(WORDS)
    assert page.locator(WORDS).all_inner_texts() == ["👍🏽", "𝔄bc", "ende", "B", "C"]
    assert page.locator("#result").inner_text() == "👍🏽 𝔄bc ende\n\nB C"
    page.locator(WORDS).nth(2).hover()
    tab.shows("ok", within="#mirror .linked")
    page.locator(WORDS).nth(3).hover()
    tab.shows("b", within="#mirror .linked")


def test_pieces_are_put_together_to_words(tab: Tab) -> None:
    page = tab.open()
    pieces = [("Haus", 0, 4, 0.9), ("tür", 4, 7, 0.8), (",", 7, 8, 1.0), (" ja", 8, 11, 0.5), ("漢", 12, 13, 0.6), ("字", 13, 14, 0.7)]
    given = [{"text": text, "start": start, "end": end, "probability": p} for text, start, end, p in pieces]
    tab.answer("v1/translate", lambda _: translated(sentence("a", "Haustür, ja 漢字", tokens=given, alignment=[])))
    tab.write("a")
    page.wait_for_selector(WORDS)
    words = page.locator(WORDS)
    assert words.all_inner_texts() == ["Haustür", ",", "ja", "漢", "字"]
    assert [words.nth(place).get_attribute("title") for place in range(5)] == ["72 %", "100 %", "50 %", "60 %", "70 %"]


def test_both_directions_of_writing(tab: Tab) -> None:
    page = tab.open()
    tab.answer("v1/translate", lambda _: translated(sentence("one two", "אחד שתיים")))
    tab.write("one two")
    page.wait_for_selector(WORDS)
    assert page.evaluate("document.getElementById('result').matches(':dir(rtl)')")
    left, right = (page.locator(WORDS).nth(place).bounding_box()["x"] for place in (1, 0))
    assert left < right
    page.locator(WORDS).first.focus()
    page.keyboard.press("ArrowLeft")  # to where the next word stands
    assert page.evaluate("document.activeElement.textContent") == "שתיים"


# ---- what is to be seen of a translation ---------------------------------------------------------------------------


def test_what_stands_before_a_chosen_word_stays(tab: Tab) -> None:
    page = tab.open()
    tab.answer("v1/translate", lambda body: translated(sentence(body["text"], body.get("prefix", "EINS ZWEI DREI."))))
    others = ("EINS ZWEI DREI.", "EINSAM UND DREI.", "EINS ZWO DREI.", "EINS ZWO, DREI.", "EINS")
    tab.answer("v1/alternatives", lambda _: {"alternatives": [{"text": text, "next": "", "probability": 0.5} for text in others]})
    tab.write("one two three.")
    tab.shows("EINS ZWEI DREI.")
    page.locator(WORDS).nth(1).click()
    page.wait_for_selector("#menu button")
    assert page.locator("#menu b").all_text_contents() == ["ZWEI", "ZWO", "(ends here)"]  # not what makes another word of the first
    assert page.locator("#menu [aria-checked=true] b").text_content() == "ZWEI"
    page.locator("#menu button").nth(1).click()
    tab.shows("EINS ZWO DREI.")
    assert tab.asked("/v1/alternatives")[0]["prefix"] == "EINS "
    assert tab.asked("/v1/translate")[-1]["prefix"] == "EINS ZWO DREI."
    tab.shows("ZWO", within=f"{WORDS}:focus")


def test_a_word_of_html_without_tags_is_chosen_as_one_of_text(tab: Tab) -> None:
    page = tab.open()
    tab.answer("v1/translate", lambda body: translated(sentence(body["text"], body.get("prefix", "EINS ZWEI"))))
    tab.answer("v1/alternatives", lambda _: {"alternatives": [{"text": "EINS ZWO", "next": "", "probability": 0.5}]})
    page.locator("#options-part summary").click()
    page.select_option("#format", "html")
    tab.write("one two")
    page.locator(WORDS).nth(1).click()
    page.locator("#menu button").click()
    tab.shows("EINS ZWO")
    assert [body.get("format") for body in tab.asked("/v1/translate")][-2:] == ["html", None]


def test_doubt_is_not_told_by_colour_alone(tab: Tab) -> None:
    page = tab.open()
    sure = {"A": 0.95, "B": 0.6, "C": 0.3, "D": 0.005}
    tab.answer("v1/translate", lambda _: translated(sentence("a b c d", "A B C D", probabilities=sure)))
    tab.write("a b c d")
    page.wait_for_selector(WORDS)
    line = "one.textDecorationLine + ' ' + one.textDecorationStyle"
    look = f"[...document.querySelectorAll('{WORDS}')].map(one => getComputedStyle(one)).map(one => {line})"
    assert set(page.evaluate(look)) == {"none solid"}
    assert page.locator("#legend").is_hidden()
    page.check("#shade")
    assert page.evaluate(look) == ["none solid", "underline dotted", "underline dashed", "underline wavy"]
    legend = look.replace(WORDS, "#legend .word")
    assert page.evaluate(legend) == page.evaluate(look)
    titles = [page.locator(WORDS).nth(place).get_attribute("title") for place in range(4)]
    assert titles == ["95 %, from: a", "60 %, from: b", "30 %, from: c", "under 1 %, from: d"]
    page.reload()
    assert page.locator("#shade").is_checked()


def test_attention_is_a_table_of_words(tab: Tab) -> None:
    page = tab.open()
    alignment = [[0, 0, 0.75], [1, 1, 0.2], [2, 1, 0.7]]
    second: Json = {"before": " ", "alignment": [[0, 0, 0.9]]}
    tab.answer("v1/translate", lambda _: translated(sentence("a b c", "X Y", alignment=alignment), sentence("d", "Z", **second)))
    tab.write("a b c d")
    page.wait_for_selector(WORDS)
    page.locator("#attention summary").click()
    tables = page.locator("#matrices table")
    assert tables.count() == 2
    assert tables.first.locator("thead th").all_inner_texts() == ["a", "b", "c"]
    assert tables.first.locator("tbody th").all_inner_texts() == ["X", "Y"]
    shares = "[...document.querySelectorAll('#matrices table')][0].querySelectorAll('tbody td')"
    found = page.evaluate(f"[...{shares}].map(one => [one.title, one.style.getPropertyValue('--share')])")
    assert found[0] == ["X ← a: 75 %", "0.75"]
    assert [share for _, share in found] == ["0.75", "0.00", "0.00", "0.00", "0.20", "0.70"]
    dark = page.evaluate(f"[...{shares}].map(one => getComputedStyle(one).backgroundColor)")
    assert len({dark[0], dark[1], dark[4], dark[5]}) == 4
    page.locator(WORDS).nth(1).hover()
    tab.shows("c", within="#mirror .linked")  # b is looked at far less
    tab.write("")
    page.wait_for_selector("#matrices table", state="detached")
    tab.shows("There is no translation yet.", within="#matrices")
    alignment.clear()  # as of a model that does not tell
    second["alignment"] = []
    tab.write("a b c d")
    tab.expect(page.locator("#matrices")).to_contain_text("Nothing is told of this")
    page.locator(WORDS).first.hover()
    assert page.locator("#mirror .linked").count() == 0


def test_the_caret_shows_what_a_word_became(tab: Tab) -> None:
    page = tab.open()
    tab.answer("v1/translate", upper)
    tab.write("one two three")
    page.wait_for_selector(WORDS)
    page.locator("#source").focus()
    page.keyboard.press("Home")
    tab.shows("ONE", within=f"{WORDS}.linked")
    page.keyboard.press("End")
    tab.shows("THREE", within=f"{WORDS}.linked")


def test_marks_in_the_text_lie_under_its_words(tab: Tab) -> None:
    page = tab.open()
    tab.answer("v1/translate", upper)
    text = "a long text of many words that goes over several lines " * 4 + "end"
    tab.write(text)
    page.wait_for_selector(WORDS)
    field, mirror = (page.locator(name).bounding_box() for name in ("#source", "#mirror"))
    assert field == mirror
    same = ["font", "lineHeight", "padding", "whiteSpace", "overflowWrap", "letterSpacing", "textAlign", "unicodeBidi", "tabSize"]
    styles = [
        page.evaluate(f"{same}.map(name => getComputedStyle(document.querySelector('{name}'))[name])") for name in ("#source", "#mirror")
    ]
    assert styles[0] == styles[1]
    assert page.evaluate("document.getElementById('source').scrollHeight <= document.getElementById('source').clientHeight")


def test_several_translations_are_listed(tab: Tab) -> None:
    page = tab.open()
    found = [{"text": text, "score": score, "log_prob": 2 * score} for text, score in (("A", -0.25), ("B", -0.5), ("C", -0.75))]
    bodies = tab.answer("v1/translate", lambda body: translated(sentence("a", "A"), hypotheses=found[: body.get("n_best", 1)]))
    page.locator("#options-part summary").click()
    page.fill("#n-best", "3")
    page.fill("#beam", "7")
    page.fill("#length-penalty", "0.5")
    tab.write("a")
    tab.shows("B", within="#others-list li:nth-child(1) span")
    tab.shows("C", within="#others-list li:nth-child(2) span")
    assert bodies[-1] == {"text": "a", "n_best": 3, "beam": 7, "length_penalty": 0.5, "format": "text", "details": True}
    page.fill("#n-best", "0")
    tab.state("Translations:")
    page.fill("#n-best", "")
    page.wait_for_selector("#others", state="hidden")
    assert "n_best" not in bodies[-1]


def test_what_is_doubtful_is_said(tab: Tab) -> None:
    tab.open()
    tab.answer("v1/translate", lambda _: translated(sentence("a", "A"), sentence("b", "b", before=" ", flags=["copied", "some_new_flag"])))
    tab.write("a b")
    tab.shows("The translation of “b” is the same as the text.", within="#remarks li:nth-child(1)")
    tab.shows("The translation of “b” some_new_flag.", within="#remarks li:nth-child(2)")


def test_a_glossary_is_kept_and_sent(tab: Tab) -> None:
    page = tab.open()
    bodies = tab.answer("v1/translate", upper)
    page.locator("#glossary-part summary").click()
    page.fill("#glossary", "# ours\nhat = Mütze\nnonsense\n  big cat =  Löwe = König \n")
    tab.shows("Line 3: needs a term, “=”, and its translation.", within="#glossary-said")
    tab.shows("2 terms", within="#glossary-count")
    tab.write("hat")
    tab.shows("HAT")
    assert bodies[-1]["glossary"] == [["hat", "Mütze"], ["big cat", "Löwe = König"]]
    page.reload()
    tab.write("hats")
    tab.shows("HATS")
    assert bodies[-1]["glossary"] == [["hat", "Mütze"], ["big cat", "Löwe = König"]]
    assert "Mütze" in page.input_value("#glossary")


def test_the_whole_is_copied(tab: Tab) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = tab.open()
    tab.answer("v1/translate", lambda _: translated(sentence("a", "A"), sentence("b", "B", before="\n\n")))
    tab.write("a\n\nb")
    page.wait_for_selector(WORDS)
    page.click("#copy")
    tab.shows("Copied", within="#copy")
    assert page.evaluate("navigator.clipboard.readText()") == "A\n\nB"


# ---- the server in other moods -------------------------------------------------------------------------------------


def test_a_target_is_chosen_among_several(tab: Tab) -> None:
    tab.answer("v1/info", lambda _: info())
    bodies = tab.answer("v1/translate", upper)
    page = tab.open()
    assert page.title() == "English → German"
    assert page.locator("#source-name").inner_text() == "English"
    tab.write("a")
    tab.shows("A")
    page.select_option("#target", "fr")
    page.wait_for_selector("#result[lang=fr]:not(.old)")
    assert [body["target"] for body in bodies] == ["de", "fr"]
    assert page.title() == "English → French"
    page.reload()
    tab.expect(page.locator("#target")).to_have_value("fr")


def test_a_model_need_not_know_its_languages(tab: Tab) -> None:
    tab.answer("v1/info", lambda _: info(source=None, targets=[]))
    bodies = tab.answer("v1/translate", upper)
    page = tab.open()
    tab.write("a")
    tab.shows("A")
    assert "target" not in bodies[0]
    assert [page.locator(name).inner_text() for name in ("#source-name", "#target-name")] == ["Text", "Translation"]
    assert page.locator("#target").is_hidden()


def test_who_waits_long_is_told_of_the_others(tab: Tab) -> None:
    page = tab.page
    page.clock.install()
    held: list[Any] = []
    page.route("**/v1/translate", lambda route: held.append(route))
    tab.answer("health", lambda _: {"status": "ok", "model": "runs/x", "queue": 3})
    tab.open()
    tab.write("x")
    page.clock.run_for(2000)
    tab.state("2 other requests are waiting, too.")
    held[0].fulfill(json=upper({"text": "x"}))
    tab.state("Translated in")


def test_what_is_too_long_is_not_sent(tab: Tab) -> None:
    tab.answer("v1/info", lambda _: info())
    bodies = tab.answer("v1/translate", upper)
    tab.open()
    tab.write("😀" * 10)
    tab.shows("😀" * 10)
    tab.write("😀" * 11)
    tab.state("too long: at most 10")
    tab.shows("11 of 10 characters", within="#count")
    assert len(bodies) == 1


def test_a_busy_server_is_asked_again_when_it_says(tab: Tab) -> None:
    page = tab.open()
    tab.answer("health", lambda _: {"status": "draining"}, status=503)  # nothing else makes it try again
    answers = iter([429, 200])

    def answer(route: Any) -> None:
        if next(answers) == 429:
            route.fulfill(status=429, json={"error": "too many wait: try again later"}, headers={"Retry-After": "1"})
        else:
            route.fulfill(json=upper(route.request.post_data_json))

    page.route("**/v1/translate", answer)
    tab.write("again")
    tab.state("too many wait: try again later. Trying again in 1 s.")
    tab.shows("AGAIN")
    tab.state("Translated in")


def test_a_busy_server_is_left_alone_as_long_as_it_says(tab: Tab) -> None:
    page = tab.page
    page.clock.install()
    tab.open()
    bodies = tab.answer("v1/translate", lambda _: {"error": "too many wait"}, status=503, headers={"Retry-After": "50"})
    tab.write("again")
    tab.state("too many wait. Trying again in 50 s.")
    page.locator("#source").fill("other")
    with page.expect_response("**/health"):  # the page looks, and finds the server up
        page.clock.run_for(16_000)
    page.wait_for_timeout(100)
    assert [body["text"] for body in bodies] == ["again"]
    page.unroute("**/v1/translate")
    tab.answer("v1/translate", upper)
    page.clock.run_for(36_000)
    tab.shows("OTHER")


@pytest.mark.parametrize(
    ("after", "wait"),
    [("99999999999", 600), ("0", 1), ("soon", 5), ("Thu, 01 Jan 2099 00:00:00 GMT", 600), ("Thu, 01 Jan 1970 00:00:00 GMT", 1)],
)
def test_a_server_is_left_alone_for_no_longer_than_makes_sense(tab: Tab, after: str, wait: int) -> None:
    tab.open()
    tab.answer("v1/translate", lambda _: {"error": "no"}, status=503, headers={"Retry-After": after})
    tab.write("x")
    tab.state(f"Trying again in {wait} s.")


def test_a_refusal_is_shown_and_not_repeated(tab: Tab) -> None:
    page = tab.open()
    bodies = tab.answer("v1/translate", lambda _: {"error": "glossary: <b> is given twice"}, status=422)
    tab.write("x")
    tab.state("glossary: <b> is given twice")
    page.wait_for_timeout(100)
    assert len(bodies) == 1
    assert page.locator("#state b").count() == 0


def test_a_server_that_is_gone_is_waited_for(tab: Tab) -> None:
    page = tab.open()
    page.clock.install()
    page.route("**/v1/translate", lambda route: route.abort())
    tab.write("x")
    page.clock.run_for(1000)
    tab.state("The server does not answer. Trying again in 5 s.")
    page.unroute("**/v1/translate")
    tab.answer("v1/translate", upper)
    page.clock.run_for(5000)
    tab.shows("X")


def test_a_server_that_ends_is_said_to(tab: Tab) -> None:
    page = tab.page
    page.clock.install()
    tab.answer("health", lambda _: {"status": "draining", "model": "runs/x", "queue": 0}, status=503)
    tab.open()
    page.clock.run_for(20_000)
    tab.state("The server is shutting down")
    page.unroute("**/health")
    tab.answer("health", lambda _: {"status": "ok", "model": "runs/x", "queue": 0})
    page.clock.run_for(20_000)
    tab.state("Ready.")


def test_a_key_is_asked_for_and_shown(tab: Tab) -> None:
    def guarded(route: Any) -> None:
        if route.request.headers.get("authorization") == "Bearer sesame":
            route.fulfill(json=upper(route.request.post_data_json))
        else:
            route.fulfill(status=401, json={"error": "the key is not known"})

    page = tab.page
    tab.answer("v1/info", lambda _: info(needs_key=True))
    page.route("**/v1/translate", guarded)
    tab.open()
    tab.state("This server needs a key.")
    for key, said in ("wrong", "the key is not known"), ("sesame", "Translated in"):
        page.fill("#key", key)
        page.keyboard.press("Enter")
        tab.write("open")
        tab.state(said)
        tab.expect(page.locator("#key-part")).to_be_visible(visible=key == "wrong")
    tab.shows("OPEN")
    assert page.evaluate("Object.values(localStorage).includes('sesame')") is False
    page.reload()
    tab.write("open")
    tab.shows("OPEN")


# ---- files ---------------------------------------------------------------------------------------------------------


def test_a_file_that_is_dropped_is_sent_as_it_is(tab: Tab) -> None:
    tab.answer("v1/info", lambda _: info())
    sent: list[Any] = []

    def answer(route: Any) -> None:
        sent.append(route.request)
        route.fulfill(body=b"msgid", headers={"Content-Disposition": 'attachment; filename="_.po"'})

    tab.page.route("**/v1/file?*", answer)
    page = tab.open()
    with page.expect_download() as download:
        drop(page, "ü.po", 'msgid "<b>"')
    assert download.value.suggested_filename == "ü.po"
    assert sent[0].url.partition("?")[2] == "target=de&name=%C3%BC.po"
    assert page.locator("#veil").is_hidden()


def test_a_file_goes_with_the_glossary_and_the_search(tab: Tab) -> None:
    tab.page.route("**/v1/file?*", lambda route: route.fulfill(body=b"x"))
    page = tab.open()
    page.locator("#glossary-part summary").click()
    page.fill("#glossary", "hat = Mütze")
    page.locator("#options-part summary").click()
    page.fill("#beam", "3")
    drop(page, "x.txt", "a hat")
    tab.shows("Save x.txt", within="#file-result")
    page.fill("#glossary", "".join(f"the term {number} = übersetzt\n" for number in range(1000)))
    drop(page, "y.txt", "a hat")
    tab.shows("The glossary is too long to go with a file: shorten it, or use mt translate --glossary.", within="#file-said")
    addresses = [request.url for request in tab.requests if "file?" in request.url]
    assert [dict(parse_qsl(urlsplit(one).query)) for one in addresses] == [{"glossary": '[["hat","Mütze"]]', "beam": "3", "name": "x.txt"}]


def test_files_that_cannot_be_translated_are_not_sent(tab: Tab) -> None:
    tab.answer("v1/info", lambda _: info())
    page = tab.open()
    drop(page, "<b>.docx", "x")
    tab.shows("<b>.docx: not one of txt, po, pot.", within="#file-said")
    drop(page, "x.txt", "x" * 101)
    tab.shows("x.txt has 101 bytes; the most is 100 bytes.", within="#file-said")
    drop(page, "x.txt", "x", count=2)
    tab.shows("One file at a time.", within="#file-said")
    assert not [request for request in tab.requests if "file?" in request.url]


def test_what_is_wrong_with_a_file_is_said(tab: Tab) -> None:
    page = tab.open()
    page.route("**/v1/file?*", lambda route: route.fulfill(status=422, json={"error": "line 3: <b> is no PO"}))
    drop(page, "x.po", "x")
    tab.shows("x.po: line 3: <b> is no PO", within="#file-said")
    assert page.locator("#file-progress").is_hidden()


# ---- keys, names, sizes, colours -----------------------------------------------------------------------------------


def test_all_is_done_by_keys(tab: Tab) -> None:
    page = tab.open()
    tab.answer("v1/translate", upper)
    found = [{"text": f"ONE {word} THREE", "next": word, "probability": 0.5} for word in ("TWO", "ZWEI", "DEUX")]
    tab.answer("v1/alternatives", lambda _: {"alternatives": found})
    page.locator("#source").focus()
    page.keyboard.type("one two three")
    tab.shows("ONE TWO THREE")
    focused = "document.activeElement.textContent.trim()"
    page.keyboard.press("Tab")  # clear
    page.keyboard.press("Tab")  # a file
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "ONE"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "TWO"
    tab.shows("two", within="#mirror .linked")
    page.keyboard.press("Enter")
    page.wait_for_selector("#menu button:focus")
    assert page.locator(f"{WORDS}[aria-expanded=true]").inner_text() == "TWO"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "TWO" in page.evaluate(focused)  # round
    page.keyboard.press("End")
    assert "DEUX" in page.evaluate(focused)
    page.keyboard.press("Escape")
    assert page.locator("#menu").is_hidden()
    assert page.evaluate(focused) == "TWO"
    assert page.locator(f"{WORDS}[aria-expanded=true]").count() == 0
    page.keyboard.press("Tab")  # past the other words
    assert page.evaluate("document.activeElement.id") == "shade"
    page.keyboard.press("Shift+Tab")  # back to where one was
    assert page.evaluate(focused) == "TWO"


INTERACTIVE = {"button", "textbox", "combobox", "checkbox", "link", "menuitemradio", "spinbutton", "menu", "progressbar", "searchbox"}


def test_every_control_has_a_name(tab: Tab) -> None:
    page = tab.open()
    tab.answer("v1/translate", lambda _: translated(sentence("a", "A"), hypotheses=[{"text": "A", "score": -1.0, "log_prob": -1.0}] * 2))
    tab.answer("v1/alternatives", lambda _: {"alternatives": [{"text": "B", "next": "B", "probability": 0.5}]})
    tab.write("a")
    page.wait_for_selector(WORDS)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.evaluate("['key-part', 'file-part', 'file-progress', 'target'].forEach(id => document.getElementById(id).hidden = false)")
    page.locator(WORDS).first.click()
    page.wait_for_selector("#menu button")
    tree = tab.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    seen = [(one["role"]["value"], one["name"]["value"]) for one in tree if not one["ignored"] and one["role"]["value"] in INTERACTIVE]
    assert {role for role, _ in seen} >= INTERACTIVE - {"searchbox", "link"}
    assert [role for role, name in seen if not name.strip()] == []
    assert page.locator("[aria-live=polite], [role=status]").count() >= 2


def test_a_phone_has_room_for_all_of_it(tab: Tab) -> None:
    page = tab.page
    page.set_viewport_size({"width": 390, "height": 800})
    tab.open()
    word = "W" * 200
    found = [{"text": word, "score": -1.0, "log_prob": -1.0}] * 2
    tab.answer("v1/translate", lambda _: translated(sentence("a", word, flags=["loop"]), hypotheses=found))
    tab.answer("v1/alternatives", lambda _: {"alternatives": [{"text": word, "next": word, "probability": 0.5}]})
    tab.write(f"{word} a")
    page.wait_for_selector(WORDS)
    page.check("#shade")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.locator(WORDS).first.click()
    page.wait_for_selector("#menu button")
    measures = runpy.run_path(str(LOOK))["MEASURES"]  # width, size of type, contrast
    for scheme in "light", "dark":
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(measures) == []
    box = page.locator("#menu").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    panes = [page.locator(".pane").nth(place).bounding_box() for place in (0, 1)]
    assert panes[1]["y"] >= panes[0]["y"] + panes[0]["height"]  # one below the other


def page_files(*kinds: str) -> Iterator[Any]:
    """The files that the page is made of."""
    return (one for one in files("mt.serve").iterdir() if one.name.startswith("playground") and one.name.endswith(kinds))


def test_colours_are_those_of_the_reports(tab: Tab) -> None:
    page = tab.open()
    look = (files("mt.page") / "look.css").read_text(encoding="utf-8")
    light, _, dark = look.partition("@media (prefers-color-scheme: dark)")
    names = ("paper", "card", "ink", "dim", "line", "mark", "error", "warning", "note", "accent")
    painted = """colours => colours.map(colour => { document.body.style.color = colour; return getComputedStyle(document.body).color; })"""
    for scheme, rules in ("light", light), ("dark", dark):
        page.emulate_media(color_scheme=scheme)
        theirs = [found[1] for name in names if (found := re.search(rf"--{name}: (#\w+)", rules))]
        tab.expect(page.locator(f"html[data-theme={scheme}]")).to_have_count(1)
        assert page.evaluate(painted, [f"var(--{name})" for name in names]) == page.evaluate(painted, theirs)


def test_dark_is_chosen_and_remembered(tab: Tab) -> None:
    page = tab.page
    page.emulate_media(color_scheme="light")
    tab.open()
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == dark
    page.emulate_media(color_scheme="dark")
    page.click("#theme")
    assert page.evaluate(paper) == light  # the reader's word is the last


def test_the_files_ask_for_nothing_elsewhere() -> None:
    for file in page_files("html", "css", "js"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(
            r"https?:|//\w+\.\w|@import|url\(|innerHTML|insertAdjacentHTML|document\.write|eval\(|style=|\son\w+=", text
        ), file.name
