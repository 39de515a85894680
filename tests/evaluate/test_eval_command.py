"""`mt eval` reads files, scores them as `score` does, and refuses what makes no sense in one line."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mt.cli.eval_command import eval_
from mt.config.schema import Config
from mt.evaluate.metrics import score
from tests.commands import Command, write

COMMAND = Command("eval", eval_)
run, refusal = COMMAND.run, COMMAND.refusal

REFERENCE = ["The small fox runs over the hill.", "Two birds sing in the old tree.", "She set the cup on a table."]
OUTPUT = ["The small fox runs over the hill.", "Two birds sang in the old tree.", "She puts the cup on the table."]


@pytest.fixture
def files(tmp_path: Path) -> SimpleNamespace:
    return SimpleNamespace(
        ref=write(tmp_path / "ref.de", REFERENCE),
        hyp=write(tmp_path / "out.de", OUTPUT),
        src=write(tmp_path / "in.en", [line.upper() for line in OUTPUT]),
        json=tmp_path / "scores.json",
    )


class LowerTranslator:
    """A run whose translation of a line is the line in lower case, with a capital; remembers how it was loaded and called."""

    lang: str | None = "de"
    precision = "fp32"
    engine = SimpleNamespace(device=SimpleNamespace(type="cpu"))
    config = Config.model_validate_json(
        '{"langs": {"src": "en", "tgt": "de"}, "data": {"train": [{"src": "train.en", "tgt": "train.de"}], "dev": "none"}}'
    )
    asked: dict[str, Any]

    @classmethod
    def load(cls, run: Path, **settings: Any) -> LowerTranslator:
        cls.asked = {"run": run, **settings}
        return cls()

    def target(self, to: str | None) -> SimpleNamespace:
        return SimpleNamespace(lang=to or self.lang)

    def stream(self, lines: list[str], *, done: Callable[[int], object], **settings: Any) -> list[SimpleNamespace]:
        self.asked.update(settings, lines=len(lines))
        done(len(lines))
        return [SimpleNamespace(text=line.capitalize()) for line in lines]


@pytest.fixture
def translator(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[LowerTranslator]]:
    module = ModuleType("mt.translator")
    module.Translator = LowerTranslator  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mt.translator", module)
    return LowerTranslator


def test_prints_each_score_with_interval_and_signature(files: SimpleNamespace) -> None:
    result = run("--hyp", files.hyp, "--ref", files.ref)
    expected = score(OUTPUT, [REFERENCE], lang="de", intervals=True)
    assert result.exit_code == 0
    assert result.stderr == ""
    for line, one in zip(result.stdout.splitlines(), expected.metrics, strict=True):
        low, high = one.interval or (0.0, 0.0)
        assert line.replace("[ ", "[").split() == [one.name, f"{one.score:.2f}", f"[{low:.2f},", f"{high:.2f}]", one.signature]


def test_json_holds_what_was_printed_unrounded(files: SimpleNamespace) -> None:
    run("--hyp", files.hyp, "--ref", files.ref, "--json", files.json)
    written = json.loads(files.json.read_text(encoding="utf-8"))
    expected = score(OUTPUT, [REFERENCE], lang="de", intervals=True).as_json()
    assert {key: written[key] for key in expected} == json.loads(json.dumps(expected))
    assert (written["hypotheses"], written["references"], written["lang"]) == (str(files.hyp), [str(files.ref)], "de")


def test_several_references_options_and_packed_files(files: SimpleNamespace, tmp_path: Path) -> None:
    other = tmp_path / "other.de.gz"
    other.write_bytes(gzip.compress("".join(f"{line.lower()}\n" for line in OUTPUT).encode()))
    words = ["--ref", files.ref, "--ref", other, "--metrics", "chrf, bleu", "--lowercase", "--tokenize", "intl", "--max-lines", "2"]
    run("--hyp", files.hyp, *words, "--json", files.json)
    written = json.loads(files.json.read_text(encoding="utf-8"))
    refs = [REFERENCE[:2], [line.lower() for line in OUTPUT[:2]]]
    expected = score(OUTPUT[:2], refs, lang="de", metrics=("chrf", "bleu"), tokenize="intl", lowercase=True, intervals=True)
    assert written["metrics"] == json.loads(json.dumps(expected.as_json()["metrics"]))
    assert written["lines"] == 2


def test_translations_from_a_pipe(files: SimpleNamespace) -> None:
    piped = run("--hyp", "-", "--ref", files.ref, "--metrics", "ter", stdin="".join(f"{line}\n" for line in OUTPUT))
    assert piped.stdout == run("--hyp", files.hyp, "--ref", files.ref, "--metrics", "ter").stdout != ""


def test_a_run_scores_as_its_translations_do(files: SimpleNamespace, translator: type[LowerTranslator]) -> None:
    by_file = run("--hyp", write(files.hyp, [line.capitalize() for line in OUTPUT]), "--ref", files.ref)
    by_run = run("--model", "runs/x", "--src", files.src, "--ref", files.ref, "--json", files.json)
    assert by_run.stdout == by_file.stdout
    assert translator.asked == {
        "run": Path("runs/x"), "checkpoint": "best", "precision": None, "weights": None, "to": None, "beam": None, "lines": 3,
    }  # fmt: skip
    written = json.loads(files.json.read_text(encoding="utf-8"))
    settings = {"checkpoint": "best", "to": None, "beam": None, "precision": None, "weights": None}
    assert written["hypotheses"] == {"model": "runs/x", **settings}
    assert written["source"] == str(files.src)


def test_files_in_other_languages_than_those_of_the_run_are_told(files: SimpleNamespace, translator: type[LowerTranslator]) -> None:
    assert translator.lang == "de"
    straight = run("--model", "runs/x", "--src", files.src, "--ref", files.ref)
    assert "by name" not in straight.stderr
    swapped = run("--model", "runs/x", "--src", files.ref, "--ref", files.src)
    what = f"{files.ref} is in 'de', not 'en', and {files.src} is in 'en', not 'de'"
    assert f"warning: by name {what}: are these files for this run?" in swapped.stderr.splitlines()


def test_the_settings_of_a_validation_reach_the_run(files: SimpleNamespace, translator: type[LowerTranslator]) -> None:
    settings = ["--checkpoint", "500", "--beam", "1", "--precision", "bf16", "--weights", "ema", "--max-lines", "2", "--to", "fr"]
    run("--model", "runs/x", "--src", files.src, "--ref", files.ref, "--metrics", "ter", *settings)
    assert translator.asked == {
        "run": Path("runs/x"), "checkpoint": "500", "precision": "bf16", "weights": "ema", "to": "fr", "beam": 1, "lines": 2,
    }  # fmt: skip


@pytest.mark.usefixtures("translator")
def test_named_sets_are_scored_one_by_one(files: SimpleNamespace, tmp_path: Path) -> None:
    short = write(tmp_path / "short.en", OUTPUT[:1]), write(tmp_path / "short.de", ["Something else."])
    named = f"--test=whole:{files.src}:{files.ref}", f"--test=short:{short[0]}:{short[1]}"
    result = run("--model", "runs/x", *named, "--metrics", "chrf", "--json", files.json)
    written = json.loads(files.json.read_text(encoding="utf-8"))
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["whole", "chrF2", "short", "chrF2"]
    assert [(name, one["lines"]) for name, one in written["tests"].items()] == [("whole", 3), ("short", 1)]
    assert written["metrics"] == written["tests"]["whole"]["metrics"] != written["tests"]["short"]["metrics"]


@pytest.mark.parametrize(
    ("words", "suffix", "lang", "expected"),
    [
        (["--lang", "zh", "--to", "ko"], ".ja", "ko", "zh"),
        (["--to", "zh"], ".ja", "ko", "zh"),
        ([], ".ja", "ko", "ko-mecab"),
        ([], ".ja", None, "ja-mecab"),
        ([], ".txt", None, "13a"),
    ],
    ids=["as said", "asked for", "the run's", "the suffix", "none"],
)
def test_the_language_is_found(
    words: list[str], suffix: str, lang: str | None, expected: str, files: SimpleNamespace, translator: type[LowerTranslator],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(translator, "lang", lang)
    result = run("--model", "x", "--src", files.src, "--ref", files.ref.rename(files.ref.with_suffix(suffix)), "--metrics", "bleu", *words)
    assert f"|tok:{expected}" in result.stdout


def test_warnings_go_to_stderr_and_into_the_json(files: SimpleNamespace) -> None:
    write(files.ref, [REFERENCE[0], "", REFERENCE[2]])
    result = run("--hyp", files.hyp, "--ref", files.ref, "--json", files.json)
    assert result.stderr == "warning: 1 empty reference (line 2)\n"
    assert json.loads(files.json.read_text(encoding="utf-8"))["warnings"] == ["1 empty reference (line 2)"]


def test_different_counts_name_files_and_counts_before_anything_is_translated(files: SimpleNamespace) -> None:
    write(files.ref, [*REFERENCE, ""])
    for words in ("--hyp", files.hyp), ("--model", "no-such-run", "--src", files.src):
        said = refusal(*words, "--ref", files.ref)
        assert said == f"{words[-1]} has 3 lines, {files.ref} has 4: line n of one must answer line n of the other"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "give --model RUN --src FILE, or --hyp FILE"),
        ("--ref r", "give --model RUN --src FILE, or --hyp FILE"),
        ("--src s --ref r", "give --model RUN --src FILE, or --hyp FILE"),
        ("--hyp h --model m --ref r", "give one of the two"),
        ("--hyp h", "add --ref FILE"),
        ("--hyp h --ref r --beam 4", "--beam goes with --model"),
        ("--hyp h --ref r --checkpoint last", "--checkpoint goes with --model"),
        ("--hyp h --ref r --test n:s:r", "a file is the translation of one test set"),
        ("--hyp h --test n:s:r --test m:s:r", "a file is the translation of one test set"),
        ("--hyp h --ref r --groups docid", "--groups docid: the test set has none; give a file with one label a line"),
        ("--model m --test n:s:r --test m:s:r --groups g", "labels of one file cannot be of several test sets"),
        ("--hyp h --test wmt20", "--test wmt20: add the direction; choose from wmt20:cs-en, "),
        ("--hyp h --test wmt20:de-de", "--test wmt20:de-de: it has no such direction; choose from wmt20:cs-en, "),
        ("--hyp h --ref r --report out.txt", "--report out.txt: give FILE.html, a page, or FILE.md"),
        ("--model m", "add --src FILE --ref FILE, or --test NAME:SRC:REF"),
        ("--model m --src s", "add --ref FILE"),
        ("--model m --ref r", "add --src FILE"),
        ("--model m --test n:s", "expected NAME:SRC:REF"),
        ("--model m --test n:s:r:r", "expected NAME:SRC:REF"),
        ("--model m --test n:s:r --test n:t:q", "another set is called n"),
        ("--hyp h --ref r --json no/such/folder.json", "there is no folder no/such"),
        ("--hyp h --ref r", "h: no such file"),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refusal(*words.split())


def test_unknown_names_are_refused_before_the_run_is_loaded(files: SimpleNamespace) -> None:
    model = ["--model", "no-such-run", "--src", files.src, "--ref", files.ref]
    assert "no metric is called `meteor`" in refusal(*model, "--metrics", "bleu,meteor")
    assert "no tokenizer `moses`" in refusal(*model, "--tokenize", "moses")
    assert run(*model, "--precision", "fp8").exit_code == 2


def test_the_scores_do_not_replace_what_they_are_of(files: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(files.ref)
    for json_file in files.hyp, files.ref, tmp_path / "link", tmp_path / ".." / tmp_path.name / "out.de":
        assert "write to another file" in refusal("--hyp", files.hyp, "--ref", files.ref, "--json", json_file)
    named = f"--test=x:{files.src}:{files.ref}"
    assert "write to another file" in refusal("--model", "runs/x", named, "--json", files.src)
    assert files.ref.read_text(encoding="utf-8").splitlines() == REFERENCE


def test_names_that_are_not_utf8_come_back_from_the_json(files: SimpleNamespace, tmp_path: Path) -> None:
    hyp = files.hyp.rename(tmp_path / "caf\udce9.de")
    assert run("--hyp", hyp, "--ref", files.ref, "--json", files.json).exit_code == 0
    assert json.loads(files.json.read_text(encoding="utf-8"))["hypotheses"] == str(hyp)


def test_files_without_an_option_are_asked_about(files: SimpleNamespace) -> None:
    assert refusal(files.hyp, files.ref).startswith(f"{files.hyp}: say what it is: --hyp FILE")


def test_where_files_of_different_length_part(files: SimpleNamespace) -> None:
    lines = [" ".join(["word"] * (1 + 7 * number % 23)) for number in range(60)]
    write(files.hyp, lines)
    write(files.ref, lines[:40] + lines[41:])
    said = refusal("--hyp", files.hyp, "--ref", files.ref)
    assert 38 <= int(said.partition("; by their lengths they part about line ")[2]) <= 44


def test_a_source_among_the_hypotheses_is_noticed(files: SimpleNamespace, tmp_path: Path) -> None:
    english = files.hyp.rename(tmp_path / "in.en")
    result = run("--hyp", english, "--ref", files.ref)
    assert result.stderr == f"warning: by their names {english} is in en, {files.ref} in de: are these the translations, not the source?\n"
    result = run("--hyp", files.ref, "--ref", files.ref)
    assert result.stderr == "warning: each translation is the reference itself: was the same file given twice?\n"


@pytest.mark.usefixtures("translator")
def test_translations_that_are_the_source_are_noticed(files: SimpleNamespace) -> None:
    write(files.src, [line.capitalize() for line in OUTPUT])
    result = run("--model", "x", "--src", files.src, "--ref", files.ref)
    said = "3 of 3 translations are the source, unchanged: has the model learnt to translate?"
    assert f"warning: {said}\n" in result.stderr


def test_a_terminal_is_not_waited_for(files: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("mt.cli.eval_sets.sys", SimpleNamespace(stdin=Terminal()))
    assert "nothing is piped in" in refusal("--hyp", "-", "--ref", files.ref)
    assert "nothing is piped in" in refusal("--hyp", files.ref, "--ref", "-")


def test_one_line_is_a_line(files: SimpleNamespace) -> None:
    test = f"x:{files.src}:{files.ref}"
    assert run("--hyp", files.hyp, "--test", test, "--max-lines", "1").stdout.startswith("x (1 line)\n")
    assert run("--hyp", files.hyp, "--test", test, "--max-lines", "2").stdout.startswith("x (2 lines)\n")


def test_a_pipe_is_not_read_twice(files: SimpleNamespace) -> None:
    assert "more than once" in refusal("--hyp", "-", "--ref", "-")
    assert "more than once" in refusal("--hyp", "-", "--ref", files.ref, "--ref", "-")


def test_files_without_lines_are_named(tmp_path: Path) -> None:
    hyp, ref = (write(tmp_path / name, []) for name in ("out.de", "ref.de"))
    assert refusal("--hyp", hyp, "--ref", ref) == f"{hyp}: has no lines, so that there is nothing to score"
