"""`mt eval` beyond a score: by group, on sacreBLEU's own sets, by a neural metric, and as a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mt.cli.eval_command import eval_
from mt.evaluate.metrics import score
from mt.extras import install
from tests.comet import Judge, pretend_comet
from tests.commands import Command, write
from tests.page.reading import Tags

COMMAND = Command("eval", eval_)
run, refusal = COMMAND.run, COMMAND.refusal
SOURCE = ["Ein kleiner Fuchs läuft.", "Zwei Vögel singen im Baum.", "Sie stellt die Tasse hin.", "Der Fluss fließt.", "Er lacht laut."]
REFERENCE = [
    "A small fox runs away.",
    "Two birds sing in the tree.",
    "She puts the cup down.",
    "The river flows on.",
    "He laughs out loud.",
]
OUTPUT = ["A little fox runs away.", "Two birds sing in the tree.", "She sets the cup down.", "The river flows.", "He laughs <b>loud</b>."]
LABELS = ["news", "talk", "news", "talk", "web"]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in {"src.de": SOURCE, "ref.en": REFERENCE, "out.en": OUTPUT, "labels": LABELS}.items():
        write(Path(name), lines)


# ── groups ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_group_scores_as_its_lines_do_alone() -> None:
    done = run("--hyp", "out.en", "--ref", "ref.en", "--groups", "labels", "--json", "out.json")
    found = json.loads(Path("out.json").read_text(encoding="utf-8"))["groups"]
    assert [(one["label"], one["lines"]) for one in found] == [("news", 2), ("talk", 2), ("web", 1)]
    for one in found:
        lines = [line for line, label in enumerate(LABELS) if label == one["label"]]
        alone = score([OUTPUT[line] for line in lines], [[REFERENCE[line] for line in lines]], lang="en")
        assert one["scores"] == {metric.metric: metric.score for metric in alone.metrics}
    talk = next(line.split() for line in done.stdout.splitlines() if line.startswith("talk"))
    assert talk == ["talk", "2", *(f"{value:.2f}" for value in found[1]["scores"].values())]
    assert done.stdout.splitlines()[-1].startswith("mean of 3")


def test_labels_are_one_a_line() -> None:
    write(Path("labels"), LABELS[:-1])
    assert refusal("--hyp", "out.en", "--ref", "ref.en", "--groups", "labels").startswith("out.en has 5 lines, labels has 4: line n")


# ── sacreBLEU's sets ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of sacreBLEU's, empty."""
    from sacrebleu.dataset import DATASETS

    for name in "multi30k/2016", "wmt20":
        monkeypatch.setattr(DATASETS[name], "_outdir", str(tmp_path / "cache" / name))
    return tmp_path / "cache"


def cached(folder: Path, before: str, **fields: list[str]) -> None:
    folder.mkdir(parents=True)
    for field, lines in fields.items():
        write(folder / f"{before}.{field}", lines)


def test_a_set_of_sacrebleus_scores_as_its_command_line_does(cache: Path) -> None:
    cached(cache / "multi30k/2016", "multi30k_2016.en-de", src=SOURCE, ref=REFERENCE)
    run("--hyp", "out.en", "--test", "multi30k/2016:en-de", "--json", "out.json")
    ours = json.loads(Path("out.json").read_text(encoding="utf-8"))
    command = ["-t", "multi30k/2016", "-l", "en-de", "-i", "out.en", "-m", "bleu", "chrf", "ter", "-w", "8", "-f", "json", "--confidence"]
    environment = {**os.environ, "SACREBLEU": str(cache)}
    done = subprocess.run([sys.executable, "-m", "sacrebleu", *command], capture_output=True, encoding="utf-8", env=environment, check=True)
    for one, theirs in zip(ours["metrics"], json.loads(done.stdout), strict=True):
        assert (one["name"], one["signature"]) == (theirs["name"], theirs["signature"])
        assert f"{one['score']:.8f}" == f"{theirs['score']:.8f}"


def test_its_labels_are_at_hand(cache: Path) -> None:
    fields = {"src": SOURCE, "ref": REFERENCE, "docid": ["a", "a", "b", "b", "b"], "origlang": ["de", "en", "de", "en", "en"]}
    cached(cache / "wmt20", "wmt20.de-en", **fields)
    done = run("--hyp", "out.en", "--test", "wmt20:de-en", "--groups", "origlang", "--metrics", "chrf")
    assert [line.split()[:2] for line in done.stdout.splitlines()[-3:-1]] == [["de", "2"], ["en", "3"]]


def test_what_is_not_in_the_cache_is_not_fetched(cache: Path) -> None:
    said = refusal("--hyp", "out.en", "--test", "multi30k/2016:en-de")
    assert said.startswith("--test multi30k/2016:en-de: is not in sacreBLEU's cache (")
    assert said.endswith("with a network, `sacrebleu -t multi30k/2016 -l en-de --echo src > /dev/null` puts it there")
    assert not cache.exists()


# ── neural metrics ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def comet(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A stand-in for the package; what it loads."""
    return pretend_comet(monkeypatch)


def test_a_neural_metric_reads_source_translation_and_reference(comet: list[str]) -> None:
    run("--hyp", "out.en", "--ref", "ref.en", "--src", "src.de", "--metrics", "chrf,comet", "--json", "out.json")
    found = json.loads(Path("out.json").read_text(encoding="utf-8"))["metrics"]
    assert [one["name"] for one in found] == ["chrF2", "COMET"]
    shares = [len(set(out.split()) & set(ref.split())) / len(out.split()) for out, ref in zip(OUTPUT, REFERENCE, strict=True)]
    assert found[1]["score"] == pytest.approx(sum(shares) / 5)
    low, high = found[1]["interval"]
    assert 0 < low < found[1]["score"] < high < 1
    assert comet == ["/hub/Unbabel/wmt22-comet-da"]
    assert Judge.asked[0][0] == {"src": SOURCE[0], "mt": OUTPUT[0], "ref": REFERENCE[0]}
    assert found[1]["signature"].startswith("model:Unbabel/wmt22-comet-da|nrefs:1|bs:1000|seed:12345|unbabel-comet:")


def test_kiwi_reads_no_reference_and_a_checkpoint_is_taken_as_it_is(comet: list[str]) -> None:
    write(Path("own.ckpt"), [])
    run("--hyp", "out.en", "--ref", "ref.en", "--src", "src.de", "--metrics", "comet-kiwi", "--comet-model", "own.ckpt")
    assert comet == ["own.ckpt"]
    assert Judge.asked[0][0] == {"src": SOURCE[0], "mt": OUTPUT[0]}


@pytest.mark.usefixtures("comet")
def test_a_neural_metric_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--hyp", "out.en", "--ref", "ref.en", "--metrics", "comet")
    assert refusal(*words) == "the metric comet reads the source text, too: add --src FILE"
    said = refusal(*words, "--src", "src.de", "--comet-model", "none/such")
    assert said.startswith("the model none/such cannot be loaded (")
    assert said.endswith("; give a checkpoint: --comet-model FILE.ckpt")
    monkeypatch.delitem(sys.modules, "comet")
    monkeypatch.setattr("mt.evaluate.neural.find_spec", lambda _name: None)
    said = refusal(*words, "--src", "src.de")
    assert said.startswith("the metric comet needs the package unbabel-comet, in an environment of its own (docs/evaluation.md)")
    assert said.endswith(f": {install('eval-neural', tested=False)}")


# ── reports and warnings ────────────────────────────────────────────────────────────────────────────────────────────


def test_reports_hold_scores_signatures_and_lines_and_no_markup_of_theirs() -> None:
    words = ("--hyp", "out.en", "--ref", "ref.en", "--src", "src.de", "--groups", "labels")
    printed = run(*words, "--report", "out.html").stdout
    page = Tags(Path("out.html").read_text(encoding="utf-8"))
    run(*words, "--report", "out.md")
    markdown = Path("out.md").read_text(encoding="utf-8")
    for one in score(OUTPUT, [REFERENCE], lang="en", intervals=True).metrics:
        assert one.signature in printed
        assert one.signature in page.text
        assert f"{one.score:.2f}" in markdown
    assert OUTPUT[4] in page.text
    assert "He laughs &lt;b&gt;loud&lt;/b&gt;." in markdown
    assert "talk" in page.text


@pytest.mark.parametrize(
    ("hyp", "ref", "said"),
    [
        ("src", "ref", "5 of 5 translations are the source, unchanged: has the model learnt to translate?"),
        ("out", "src", "5 of 5 references are the source, unchanged: was the source given as the reference?"),
        ("near", "ref", "the translations are nearer to the source than to the references ("),
    ],
)
def test_files_taken_for_each_other_are_noticed(hyp: str, ref: str, said: str) -> None:
    files = {"src": SOURCE, "ref": REFERENCE, "out": OUTPUT, "near": [line.replace("e", "é") for line in SOURCE]}
    for name, lines in files.items():
        write(Path(f"{name}.txt"), lines)
    assert f"warning: {said}" in run("--hyp", f"{hyp}.txt", "--ref", f"{ref}.txt", "--src", "src.de").stderr


def test_empty_translations_are_counted_where_there_is_something_to_translate() -> None:
    write(Path("out.en"), [OUTPUT[0], "", " ", *OUTPUT[3:]])
    assert "warning: 2 empty translations (lines 2, 3)\n" in run("--hyp", "out.en", "--ref", "ref.en").stderr
