"""Lines made by a model: N of N, the same whatever the windows and however often the process was killed; useless ones are blank."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from mt.decode.engine import Beam, Sampling
from mt.decode.translation import Translation
from mt.rundir import RunDir
from mt.search.step import Hypothesis
from mt.synthesize import produce as module
from mt.synthesize.produce import Job, chooser, produce, wrong_language
from mt.synthesize.unfinished import beside
from mt.translator import Translator
from tests import toy
from tests.translating import Ended, in_float64, lively_run, mt

LINES = [*toy.sentences(7, seed=5, shortest=1), "", *toy.sentences(12, seed=6), " \t"]
SEARCHES = pytest.mark.parametrize("search", [Beam(width=3), Sampling(temperature=1.5)], ids=["beam", "sampling"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    short = ("decode.max_length_factor=1", "decode.max_length_extra=12", "decode.beam=3")
    return lively_run(tmp_path_factory.mktemp("lively"), *short, checkpoints=(1, 2))


@pytest.fixture(scope="module")
def translator(run: RunDir) -> Translator:
    return in_float64(run)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    toy.write_lines(tmp_path / "mono.trg", LINES)
    return tmp_path / "mono.trg"


def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


@SEARCHES
def test_n_lines_in_n_lines_out_whatever_the_windows(
    translator: Translator, given: Path, monkeypatch: pytest.MonkeyPatch, search: Beam | Sampling
) -> None:
    job, told, made = Job("src", given, search, max_repeats=1, max_ratio=1000), list[str](), list[list[str]]()
    for window in (1, 4, 100):
        monkeypatch.setattr(module, "WINDOW", window)
        output = given.with_name(f"out.{window}")
        produce(job, output, translator, "m", say=told.append)
        made.append(lines_of(output))
    assert made[0] == made[1] == made[2]
    texts = [one.text for one in translator.translate(LINES, settings=search)]
    cut = ["truncated" in one.flags for one in translator.translate(LINES, settings=search)]
    assert made[0] == ["" if gone or text == line else text for gone, text, line in zip(cut, texts, LINES, strict=True)]


def test_what_is_of_no_use_is_blank_and_counted(translator: Translator, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def translated(text: str, *, truncated: bool = False) -> Translation:
        return Translation("", [(text, Hypothesis([5], -1.0, -1.0, truncated))])

    line = "ge ge da bo ."
    cases = {
        "da fe ba mo .": None,
        line: "source = target",
        "": "empty side",
        "da " * 8 + ".": "more than 50% repeated n-grams",
        "dafemo": None,
        "d": "one side more than 6 times the other",
        "ra fe bi ko da": "ended by the length limit",
    }
    found = [translated(text, truncated=text.startswith("ra")) for text in cases]
    monkeypatch.setattr(Translator, "stream", lambda *_, **__: iter(found))
    toy.write_lines(given, [line] * len(cases))
    told: list[str] = []
    for side in ("src", "tgt"):
        output = given.with_name(side)
        produce(Job(side, given, Beam(width=3)), output, translator, "m", say=told.append)  # type: ignore[arg-type]
        assert lines_of(output) == ["" if reason else text for text, reason in cases.items()]
        assert told[0].startswith(f"{side}: kept 2 of 7 pairs (")
        assert {line.strip() for line in told[1:]} == {
            f"{why}: blank, as of mono.trg:{n}" for n, why in enumerate(cases.values(), 1) if why
        }
        told.clear()


class KilledError(BaseException):
    """Ends the process as far as the file can see."""


@SEARCHES
def test_killed_after_any_window_it_comes_to_the_same(
    translator: Translator, given: Path, monkeypatch: pytest.MonkeyPatch, search: Beam | Sampling
) -> None:
    monkeypatch.setattr(module, "WINDOW", 4)
    job, told = Job("src", given, search), []
    whole, again = given.with_name("whole"), given.with_name("again")
    produce(job, whole, translator, "m", say=told.append)
    real, calls, kills = Translator.stream, 0, 0

    def second_time_lucky(self: Translator, lines: list[str], **named: object) -> object:
        nonlocal calls
        calls += 1
        yield from real(self, lines, **named)  # type: ignore[arg-type]
        if calls % 2 == 0:
            raise KilledError

    monkeypatch.setattr(Translator, "stream", second_time_lucky)
    while not again.exists():
        try:
            produce(job, again, translator, "m", say=told.append)
        except KilledError:
            kills += 1
    assert kills == 5
    assert again.read_bytes() == whole.read_bytes()
    assert told[-1].replace("again", "whole") in told[: len(told) // 2]


def test_who_interrupts_it_is_told_how_to_go_on(translator: Translator, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mt.synthesize.unfinished.Unfinished.finish", interrupted)
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        produce(Job("src", given, Beam(width=1)), given.with_name("out"), translator, "m", say=told.append)
    assert told == [f"{given.with_name('out')}: 21 lines done; the same command goes on from there"]


def test_text_in_another_language_than_the_model_reads_is_doubted() -> None:
    assert wrong_language(Job("src", Path("mono.de"), Beam()), ("de", "fr")) is None
    assert wrong_language(Job("src", Path("mono.txt.gz"), Beam()), ("de",)) is None
    assert wrong_language(Job("src", Path("mono.de"), Beam()), ()) is None
    found = [wrong_language(Job(side, Path("x.de.gz"), Beam()), ("en",)) for side in ("src", "tgt")]  # type: ignore[arg-type]
    said = "by its name x.de.gz is in 'de', but the model translates from 'en': is it the"
    assert found == [f"{said} reverse model, which translates from the language of your text?", f"{said} right model?"]


def test_nearest_to_the_reference_by_the_sentence_score() -> None:
    texts = ["the cat sat on the mat .", "a cat is on a mat .", "a cat was sitting there .", "no"]
    references = ["a cat is on the mat .", "a cat was sitting on it .", "", "no dogs"]
    translation = Translation("x", [(text, Hypothesis([5], -n, -n, False)) for n, text in enumerate(texts)])
    for metric, score in ("chrf", CHRF().sentence_score), ("bleu", BLEU(effective_order=True).sentence_score):
        choose = chooser(Job("tgt", Path(), Beam(), metric=metric), lang="en")
        for reference in references:
            best = max(texts, key=lambda text: score(text, [reference]).score) if reference else texts[0]  # noqa: B023
            assert choose(translation, reference) == (best, False)
    cut = replace(translation, hypotheses=[(text, replace(one, truncated=text != "no")) for text, one in translation.hypotheses])
    assert chooser(Job("tgt", Path(), Beam()), lang="en")(cut, references[0]) == ("no", False)


# ── the commands ────────────────────────────────────────────────────────────────────────────────────────────────────


def backtranslate(run: RunDir, given: Path, *words: str, output: str = "out") -> Ended:
    return mt("backtranslate", "--model", run.path, "--input", given, "--output", given.with_name(output), *words)


def begin(run: RunDir, given: Path, *words: str) -> None:
    """What a kill before the end leaves."""

    def kill(_: object) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.synthesize.unfinished.Unfinished.finish", kill)
        with pytest.raises(KilledError):
            backtranslate(run, given, *words)


def test_other_models_options_and_inputs_are_refused(run: RunDir, given: Path) -> None:
    begin(run, given, "--beam", "2")
    for words, problem in (
        (("--beam", "3"), r"search was Beam\(width=2, .*, is Beam\(width=3, "),
        (("--beam", "2", "--checkpoint", "2"), "model was step-00000001 .*, is step-00000002 "),
        (("--beam", "2", "--max-ratio", "3"), r"--max-ratio was 6.0, is 3.0"),
        (("--sample", "--seed", "7"), "--seed was 1, is 7; search was Beam"),
    ):
        done = backtranslate(run, given, *words)
        assert (done.code, len(done.err)) == (2, 1)
        assert re.search(rf"^{beside(given.with_name('out'))}: was begun otherwise \({problem}", done.err[0]), done.err
    toy.write_lines(given, [*LINES, "one more"])
    assert "(input was the file of SHA-256" in backtranslate(run, given, "--beam", "2").err[0]
    toy.write_lines(given, LINES)
    done = backtranslate(run, given, "--beam", "2")
    assert (done.code, done.err[0]) == (0, f"{given.with_name('out')}: goes on after 21 lines")
    done = backtranslate(run, given, "--beam", "2")
    assert (done.code, done.err) == (2, [f"{given.with_name('out')}: is there already; remove it, or give another --output"])


def test_a_process_that_is_killed_goes_on(run: RunDir, given: Path) -> None:
    toy.write_lines(given, LINES * 30)
    code = "import mt.synthesize.produce as p; p.WINDOW = 8; from mt.cli.app import main; main()"
    words = ["backtranslate", "--model", run.path, "--input", given, "--sample", "--seed", "3"]
    progress = beside(given.with_name("killed")) / "progress.json"
    killed = subprocess.Popen([sys.executable, "-c", code, *map(str, words), "--output", str(given.with_name("killed"))])
    while not progress.exists() and killed.poll() is None:
        time.sleep(0.002)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert 0 < json.loads(progress.read_text("utf-8"))["lines"] < 30 * len(LINES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", 8)
        assert mt(*words, "--output", given.with_name("killed")).code == 0
        assert mt(*words, "--output", given.with_name("whole")).code == 0
    assert given.with_name("killed").read_bytes() == given.with_name("whole").read_bytes()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("backtranslate", "--beam", "2", "--sample"), "--sample and --beam 2: give one of the two"),
        (("backtranslate", "--temperature", "2"), "--temperature goes with --sample: add it"),
        (("backtranslate", "mono.de"), "mono.de: a file goes behind its option: --input mono.de"),
        (("backtranslate", "--max-ratio", "1"), "--max-ratio 1: give a number above 1, such as 6"),
        (("distill", "--max-ratio", "inf"), "--max-ratio inf: give a number above 1"),
        (("distill", "--max-repeats", "nan"), "--max-repeats nan: give a share from 0 to 1"),
        (("backtranslate", "--checkpoint", "7"), "no checkpoint '7'"),
        (("backtranslate", "--to", "fr"), "--to fr: this model was trained without target-language tags"),
        (("distill", "--n-best", "2"), "--n-best goes with --tgt, by which one of several translations is chosen: add it"),
        (("distill", "--metric", "bleu"), "--metric goes with --tgt"),
        (("distill", "--tgt", "SHORT", "--beam", "1"), "greedy search has one: give --beam 2 or more"),
        (("distill", "--tgt", "SHORT"), "has 21 lines, "),
        (("distill", "--tgt", "SHORT", "--n-best", "4"), "4 hypotheses|raise|beam"),
        (("distill", "mono.de"), "mono.de: a file goes behind its option: --src mono.de"),
    ],
)
def test_what_cannot_be_is_one_line(run: RunDir, given: Path, words: tuple[str, ...], problem: str) -> None:
    toy.write_lines(given.with_name("short"), LINES[:5])
    command, *rest = (str(given.with_name("short")) if word == "SHORT" else word for word in words)
    option = "--src" if command == "distill" else "--input"
    done = mt(command, "--model", run.path, option, given, "--output", given.with_name("out"), *rest)
    assert (done.code, len(done.err)) == (2, 1), done.err
    assert re.search(problem, done.err[0])
    assert not given.with_name("out").exists()
    assert not beside(given.with_name("out")).exists()


def test_a_pipe_and_an_input_as_output_are_refused(run: RunDir, given: Path) -> None:
    os.mkfifo(given.with_name("pipe"))
    assert "is a pipe or device, and is read more than once" in backtranslate(run, given.with_name("pipe")).err[0]
    assert "an input, too" in backtranslate(run, given, output=given.name).err[0]
    assert "-: is a pipe or device" in mt("backtranslate", "--model", run.path, "--input", "-", "--output", given.with_name("out")).err[0]


def test_text_that_cannot_be_read_is_told_before_anything_is_made(run: RunDir, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW", 2)
    text = given.read_bytes()
    given.write_bytes(text + b"\xff\n")
    done = backtranslate(run, given)
    assert (done.code, len(done.err)) == (2, 1)
    assert f"{given}:{len(LINES) + 1}: byte 0xFF is not UTF-8" in done.err[0]
    assert not beside(given.with_name("out")).exists()
    given.write_bytes(text)
    assert backtranslate(run, given).code == 0


def test_distilled_with_references_every_line_is_one_of_the_n_best(run: RunDir, given: Path) -> None:
    toy.write_lines(given.with_name("ref"), map(toy.translation, LINES[:7]))
    toy.write_lines(given, LINES[:7])
    plain, near = given.with_name("plain"), given.with_name("near")
    assert mt("distill", "--model", run.path, "--src", given, "--output", plain, "--max-repeats", "1").code == 0
    words = ("--tgt", given.with_name("ref"), "--max-repeats", "1", "--beam", "3", "--n-best", "3")
    assert mt("distill", "--model", run.path, "--src", given, "--output", near, *words).code == 0
    found = Translator.load(run.path).translate(LINES[:7], settings=Beam(width=3, n_best=3))
    for line, other, translation in zip(lines_of(plain), lines_of(near), found, strict=True):
        assert line in ("", translation.text)
        assert other in ("", *(text for text, _ in translation.hypotheses))
