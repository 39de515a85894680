"""`mt compare` reads files and runs, says what `compare` finds, writes it, and refuses what makes no sense in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tqdm import tqdm

from mt.cli.compare_command import compare
from mt.cli.text_output import lines_bar
from mt.config.schema import Config
from mt.evaluate.compare import compare as compare_lines
from mt.evaluate.significance import Resampling
from tests.commands import Command, write

COMMAND = Command("compare", compare)
run, refusal = COMMAND.run, COMMAND.refusal
QUICK = ("--samples", "50", "--trials", "100", "--seed", "7")
REFERENCE = [f"The small fox number {n} runs over the hill ." for n in range(20)]
SOURCE = [f"Der kleine Fuchs Nummer {n} rennt ." for n in range(20)]
GOOD = [line.replace("small", "little") if n % 3 else line for n, line in enumerate(REFERENCE)]
BAD = [line.replace("fox", "dog").replace("over", "under") for line in REFERENCE]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in {"ref.en": REFERENCE, "src.de": SOURCE, "good.en": GOOD, "bad.en": BAD, "other/good.en": REFERENCE}.items():
        write(Path(name), lines)


class Shouter:
    """A run whose translation of a line is the line in capitals; trained on one line."""

    config = Config.model_validate_json(
        '{"langs": {"src": "de", "tgt": "en"}, "data": {"train": [{"src": "train.de", "tgt": "train.en"}], "dev": "none"}}'
    )
    precision = "fp32"
    engine = SimpleNamespace(device=SimpleNamespace(type="cpu"))
    loaded: list[dict[str, Any]]

    @classmethod
    def load(cls, run: Path, **settings: Any) -> Shouter:
        cls.loaded.append({"run": str(run), **settings})
        return cls()

    def target(self, to: str | None) -> SimpleNamespace:
        return SimpleNamespace(lang=to or "en")

    def stream(self, lines: list[str], *, done: Callable[[int], object], **settings: Any) -> list[SimpleNamespace]:
        self.loaded[-1].update(settings)
        done(len(lines))
        return [SimpleNamespace(text=line.upper()) for line in lines]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> type[Shouter]:
    module = ModuleType("mt.translator")
    module.Translator = Shouter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mt.translator", module)
    monkeypatch.setattr(Shouter, "loaded", [], raising=False)
    write(Path("train.de"), ["Der kleine Fuchs rennt ."])
    write(Path("train.en"), ["The small fox runs ."])
    write(
        Path("runs/x/config.yaml"), ["langs: {src: de, tgt: en}", "data: {train: [{src: ../../train.de, tgt: ../../train.en}], dev: none}"]
    )
    return Shouter


def test_files_are_compared_as_their_lines_are() -> None:
    done = run("--ref", "ref.en", "--hyp", "good.en", "--hyp", "bad.en", *QUICK, "--json", "out.json")
    assert (done.exit_code, done.stderr) == (0, "")
    written = json.loads(Path("out.json").read_text(encoding="utf-8"))
    expected = compare_lines({"good": GOOD, "bad": BAD}, [REFERENCE], lang="en", resampling=Resampling(50, 100, 7)).as_json()
    for key in ("systems", "rivals", "signatures", "lines", "baseline"):
        assert written[key] == json.loads(json.dumps(expected[key]))
    assert written["hypotheses"] == {"good": "good.en", "bad": "bad.en"}
    assert "bad against good" in done.stdout


def test_one_line_is_a_line() -> None:
    words = ("--ref", "ref.en", "--hyp", "good.en", "--hyp", "bad.en", *QUICK)
    assert run(*words, "--max-lines", "1").stdout.startswith("1 line, 1 reference; 2 systems")
    assert run(*words, "--max-lines", "2").stdout.startswith("2 lines, 1 reference; 2 systems")


def test_names_and_the_baseline_are_chosen() -> None:
    done = run("--ref", "ref.en", "--hyp", "one=good.en", "--hyp", "bad.en", "--baseline", "bad", *QUICK)
    assert "one against bad" in done.stdout
    done = run("--ref", "ref.en", "--hyp", "good.en", "--hyp", "other/good.en", *QUICK)
    assert "other/good.en against good.en" in done.stdout


def test_reports_are_of_the_kind_their_names_say() -> None:
    words = ("--ref", "ref.en", "--src", "src.de", "--hyp", "good.en", "--hyp", "<b>=bad.en", *QUICK)
    run(*words, "--report", "out.html")
    page = Path("out.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "&lt;b&gt; against good" in page
    assert "<b>bad" not in page
    run(*words, "--report", "out.md")
    assert Path("out.md").read_text(encoding="utf-8").startswith("# &lt;b&gt; against good\n")
    assert "--report out.pdf: give FILE.html, a page, or FILE.md" in refusal(*words, "--report", "out.pdf")


def test_runs_translate_and_tell_which_words_are_rare(runs: type[Shouter]) -> None:
    done = run(
        "--ref", "ref.en", "--src", "src.de", "--hyp", "good.en", "--model", "runs/x", "--model", "again=runs/x", "--beam", "1", *QUICK
    )
    assert (done.exit_code, done.stderr) == (0, "")
    loading = {"checkpoint": "best", "precision": None, "weights": None, "to": None, "beam": 1}
    assert runs.loaded == [{"run": "runs/x", **loading}] * 2
    assert "x against good" in done.stdout
    assert "again against good" in done.stdout
    assert "\nless than 5 times" not in done.stdout  # the number of each line was never seen, so that all lines are in one bucket
    write(Path("seen.de"), SOURCE[:9])
    done = run("--ref", "ref.en", "--src", "src.de", "--hyp", "good.en", "--hyp", "bad.en", "--train", "seen.de", "--rare", "3", *QUICK)
    (less,) = (line for line in done.stdout.splitlines() if line.startswith("less than 3 times"))
    assert less.split()[4] == "9"


@pytest.mark.usefixtures("runs")
def test_a_terminal_is_told_how_far_a_translation_is(monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[tqdm[Any]] = []

    def shown(total: int, *, shown: bool) -> tqdm[Any]:
        bars.append(lines_bar(total, shown=not shown))  # here it would be, for stderr is no terminal
        return bars[-1]

    monkeypatch.setattr("mt.cli.judged.lines_bar", shown)
    run("--ref", "ref.en", "--src", "src.de", "--model", "runs/x", "--model", "again=runs/x", *QUICK)
    assert [(bar.disable, bar.total, bar.n) for bar in bars] == [(True, 20, 20)] * 2  # closed


@pytest.mark.usefixtures("runs")
def test_an_export_does_not_know_what_it_was_trained_on(tmp_path: Path) -> None:
    words = ("--ref", "ref.en", "--src", "src.de", "--model", "export", *QUICK)
    for name, text in {"mt.json": "{}", "mt.yaml": "data: {train: [{src: train.de, tgt: train.en}]}"}.items():
        write(tmp_path / "export" / name, [text])
    done = run(*words, "--hyp", "good.en")
    assert done.exit_code == 0
    assert done.stderr == "no buckets of rare words: an export does not know its training text; name it with --train FILE\n"
    for more in ("--hyp", "good.en", "--train", "src.de"), ("--model", "runs/x"):
        assert "rare words" not in run(*words, *more).stderr


@pytest.mark.usefixtures("runs")
def test_training_text_that_is_gone_is_told_and_does_without() -> None:
    Path("train.de").unlink()
    done = run("--ref", "ref.en", "--src", "src.de", "--hyp", "good.en", "--model", "runs/x", *QUICK)
    assert done.exit_code == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: rare words: ")
    assert line.endswith("; name the text that was trained on with --train FILE")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--hyp good.en", "only good was given to compare: give two systems or more"),
        ("", "nothing was given to compare"),
        ("--hyp good.en --hyp good.en", "another system is called good.en; give it a name of its own: --hyp NAME=good.en"),
        ("--hyp good.en --model good", "two systems are called good"),
        ("--hyp good.en --hyp bad.en --baseline x", "--baseline x: no system is called so; choose from good, bad"),
        ("--hyp good.en --model x", "--model needs something to translate: add --src FILE"),
        ("--hyp good.en --hyp bad.en --train src.de", "--train is for words of the source: add --src FILE"),
        ("--hyp good.en --hyp none.en", "none.en: no such file"),
        ("--hyp good.en --hyp empty.en", "ref.en has 20 lines, empty.en has 0"),
        ("--hyp good.en --hyp bad.en --metrics bleu,blue", "no metric is called `blue`"),
        ("--hyp good.en --hyp bad.en --json good.en", "write to another file"),
        ("--hyp good.en --hyp bad.en --report no/such.html", "there is no folder no"),
        ("--hyp good.en --hyp bad.en --report out.md --json out.md", "--report out.md: --json goes there, too"),
        ("good.en bad.en", "good.en: say what it is"),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, said: str) -> None:
    write(Path("empty.en"), [])
    assert said in refusal("--ref", "ref.en", *words.split())


def test_files_without_lines_are_refused() -> None:
    write(Path("empty.en"), [])
    said = refusal("--ref", "empty.en", "--hyp", "a=empty.en", "--hyp", "b=empty.en")
    assert said == "empty.en: has no lines, so that there is nothing to score"


def test_one_line_is_compared_and_what_is_in_it_does_nothing_to_the_terminal() -> None:
    for name, line in {"ref": "The fox runs.", "a": "The \x1b[31m fox.", "b": "A fox"}.items():
        write(Path(f"one.{name}"), [line])
    done = run("--ref", "one.ref", "--hyp", "one.a", "--hyp", "one.b", *QUICK)
    assert done.exit_code == 0
    assert "The \ufffd[31m fox." in done.stdout
    assert "\x1b" not in done.stdout


def test_swapped_files_are_noticed() -> None:
    done = run("--ref", "ref.en", "--src", "src.de", "--hyp", "good.en", "--hyp", "src.de", *QUICK)
    assert "warning: src: 20 of 20 translations are the source, unchanged: has the model learnt to translate?" in done.stderr
