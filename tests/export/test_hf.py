"""`mt export hf`: a folder that the transformers library loads alone, proven before it has its name, and a page on how to use it."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from mt.export import hf
from mt.export.hf import export, quietly
from mt.extras import install
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.runs import final_test, train
from tests.translating import Ended, lively_run, mt

transformers = pytest.importorskip("transformers", reason="the extra `export` is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
TIED = "model.tied_embeddings=true"


class Made:
    """A run that knows the toy language, exported by the command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run, self.out = folder, folder / "run", folder / "my-hf"
        toy.write_corpus(folder)
        changes = ("train.validation={every: 200, samples: 0}", "data.filters.copies=true", final_test(folder), "langs={src: en, tgt: de}")
        assert train(toy.config(folder, *changes)).code == 0
        self.done = mt("export", "hf", self.run, self.out)
        self.few = folder / "few.src"
        toy.write_lines(self.few, toy.sentences(2, seed=7, longest=3))

    @property
    def card(self) -> str:
        return (self.out / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("trained"))


def block(text: str, name: str = "") -> str:
    """The first block of Python that names a folder of this name, or any."""
    return next(code for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if name in code)


def printed(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What a program prints that is run in a folder."""
    monkeypatch.chdir(folder)
    capsys.readouterr()
    with quietly(transformers):
        exec(code, {})
    return capsys.readouterr().out.splitlines()


def test_the_proof_is_told_and_everything_is_there(made: Made) -> None:
    assert made.done.code == 0, made.done.err
    told = "\n".join(made.done.err)
    assert re.search(r"proof: 40 lines of .*, translated by the run and by transformers 5", told)
    assert re.search(r"^greedy +40 of 40 ", told, re.MULTILINE)
    assert re.search(r"^beam 5 +40 of 40 ", told, re.MULTILINE)
    ours, theirs = re.search(r"loss of 40 translations: (\S+) a piece by the run, (\S+) by the export", told).groups()  # type: ignore[union-attr]
    assert float(ours) == pytest.approx(float(theirs), abs=1e-4)
    model = {"config.json", "model.safetensors", "generation_config.json"}
    assert set(os.listdir(made.out)) == model | {"tokenizer.json", "tokenizer_config.json", "README.md", "mt.json"}
    facts = json.loads((made.out / "mt.json").read_text(encoding="utf-8"))
    assert (facts["program"], facts["run"]) == ("transformers", "run")
    assert [one["equal"] for one in facts["proof"]["searches"]] == [40, 40]


@pytest.mark.parametrize("which", ["page", "card"])
def test_the_pages_show_how_it_is_asked(
    made: Made, which: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints what mt translates, with the run's own beam."""
    line = toy.sentences(1, seed=8)[0]
    code = block(PAGE.read_text(encoding="utf-8"), "my-hf") if which == "page" else block(made.card)
    given = re.sub(r"lines = \[.*\]", lambda _: f"lines = {[line, 'meri .']!r}", code)
    assert given != code
    expected = [one.text for one in Translator.load(made.run).translate([line, "meri ."])]
    assert printed(given, made.folder, monkeypatch, capsys) == expected


def test_what_it_generates_by_itself_is_the_runs_beam(made: Made) -> None:
    """With no option but the text, as a pipeline asks it."""
    with quietly(transformers):
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(made.out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(made.out)
    lines = toy.sentences(6, seed=9)
    outputs = model.generate(**tokenizer(lines, return_tensors="pt", padding=True))
    expected = [one.text for one in Translator.load(made.run).translate(lines)]
    assert tokenizer.batch_decode(outputs, skip_special_tokens=True) == expected
    found = model.generation_config
    assert (found.num_beams, found.early_stopping, found.length_penalty, found.suppress_tokens) == (5, True, 1.0, [0, 1, 2])
    assert (found.decoder_start_token_id, found.eos_token_id, found.pad_token_id, found.max_new_tokens) == (2, 3, 0, 532)


def test_the_card_says_what_the_run_knows(made: Made) -> None:
    head = made.card.split("---")[1]
    assert head.strip().splitlines() == [
        *('language: ["en", "de"]', 'library_name: "transformers"', 'pipeline_tag: "translation"', 'license: "unknown"')
    ]
    scores = json.loads((made.run / "reports" / "test.json").read_text(encoding="utf-8"))["final"]["metrics"]
    for metric in scores:
        low, high = metric["interval"]
        assert f"| final | {metric['name']} | {metric['score']:.2f} | \\[{low:.2f}, {high:.2f}\\] | 5 |" in made.card
        assert metric["signature"].replace("|", "\\|").replace("#", "\\#") in made.card
    filtered = json.loads((made.run / "data" / "filtered.json").read_text(encoding="utf-8"))["corpora"]
    ((name, tally),) = filtered.items()
    assert f"| {name} | {tally['total']} | {tally['kept']} | {tally['total'] - tally['kept']} |" in made.card
    parameters = sum(one.numel() for one in Translator.load(made.run).model.parameters())
    assert f"| parameters | {parameters} |" in made.card
    assert "| greedy | 40 of 40 |" in made.card
    assert str(made.folder) not in made.card + (made.out / "mt.json").read_text(encoding="utf-8")


def test_text_of_corpora_is_escaped_in_the_card(tmp_path: Path) -> None:
    run = lively_run(tmp_path, TIED, "data.train=[{src: train.src, tgt: train.trg, name: '<script>*a*|b'}]", checkpoints=(1, 2))
    run.data.mkdir()
    run.filtered.write_text(json.dumps({"corpora": {"<script>*a*|b": {"total": 2, "kept": 2, "dropped": []}}}), encoding="utf-8")
    run.reports.mkdir()
    metric = {"name": "BLEU", "score": 1.0, "signature": "<b>|x"}
    run.test_scores.write_text(json.dumps({"<img src=x>": {"metrics": [metric]}}), encoding="utf-8")
    out = tmp_path / 'a "name"\n# of mine'
    export(run.path, out)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert '\n# a "name" \\# of mine\n' in card
    assert ast.literal_eval(re.search(r"from_pretrained\((.*)\)\n", block(card)).group(1)) == out.name  # type: ignore[union-attr]
    assert "&lt;script&gt;\\*a\\*\\|b" in card
    assert not re.search(r"<(script|img|b)\b", card)
    assert "which this is not" not in card
    export(run.path, tmp_path / "last", "last")
    assert "which this is not" in (tmp_path / "last" / "README.md").read_text(encoding="utf-8")


def test_a_tag_goes_before_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    there, back = "{src: train.src, tgt: train.trg, langs: {src: a, tgt: b}}", "{src: train.trg, tgt: train.src, langs: {src: b, tgt: a}}"
    run = lively_run(tmp_path, TIED, f"data.train=[{there}, {back}]", "data.dev=none", "decode.beam=1")
    export(run.path, tmp_path / "out")
    translator = Translator.load(run.path)
    code = block((tmp_path / "out" / "README.md").read_text(encoding="utf-8"))
    code = re.sub(r"lines = \[.*\]", "lines = ['meri .']", code)
    first, second = translator.targets
    for to in (first, second):
        found = printed(code.replace(f"<2{first}>", f"<2{to}>"), tmp_path, monkeypatch, capsys)
        assert found == [translator.translate(["meri ."], to=to)[0].text]
    never = json.loads((tmp_path / "out" / "generation_config.json").read_text(encoding="utf-8"))["suppress_tokens"]
    assert never == sorted([0, 1, 2, *translator.tokenizers.tgt.tags.values()])


def test_one_tag_is_put_by_the_tokenizer(tmp_path: Path) -> None:
    run = lively_run(tmp_path, TIED, "langs={src: a, tgt: b}", "data.tags=true")
    export(run.path, tmp_path / "out")
    src = Translator.load(run.path).tokenizers.src
    ids = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")("meri .").input_ids
    assert ids == [src.tag("b"), *src.encode("meri ."), src.eos]


def test_two_vocabularies_have_a_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And none is taken for that of both."""
    run = lively_run(tmp_path, "model.norm=post", "tokenizer.joint=false", "decode.beam=1")
    export(run.path, tmp_path / "out")
    code = re.sub(r"lines = \[.*\]", "lines = ['meri .']", block((tmp_path / "out" / "README.md").read_text(encoding="utf-8")))
    assert printed(code, tmp_path, monkeypatch, capsys) == [Translator.load(run.path).translate(["meri ."])[0].text]
    with pytest.raises(Exception):  # noqa: B017, PT011 (whatever the library says of it)
        transformers.AutoTokenizer.from_pretrained(tmp_path / "out")


def refused(run: RunDir, out: Path, *words: str | Path) -> str:
    """The line that an export ends with that left nothing."""
    done: Ended = mt("export", "hf", run.path, out, *words)
    assert done.code == 2
    assert not out.exists()
    assert not list(out.parent.glob(f".{out.name}*"))
    return done.err[-1]


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        (("model.tied_embeddings=false",), ["model.tied_embeddings false"]),
        (("tokenizer.joint=false", TIED), ["tokenizer.joint false"]),
        ((TIED, "model.positions=rope"), ["model.positions rope"]),
        ((TIED, "model.norm_kind=rms", "model.activation=swiglu"), ["model.norm_kind rms", "model.activation swiglu"]),
        ((TIED, "tokenizer.normalization=nmt_nfkc"), ["tokenizer.normalization nmt_nfkc"]),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, tuple) else "",
)
def test_what_it_cannot_hold_is_refused_as_it_was_foretold(tmp_path: Path, options: tuple[str, ...], reasons: list[str]) -> None:
    run = lively_run(tmp_path, *options)
    line = refused(run, tmp_path / "out", "--no-proof")
    assert line.startswith("transformers cannot hold this model: ")
    assert line.endswith("; `mt export ct2` can")
    assert all(reason in line for reason in reasons)
    foretold = hf.strange_to_hugging_face(toy.config(tmp_path, *options, "model.dim=16", "model.heads=2"))
    assert all(reason in line for reason in foretold)


def spoil(monkeypatch: pytest.MonkeyPatch, *names: str, by: float) -> None:
    """Let some of the weights go over multiplied by something."""
    whole = hf.tensors
    monkeypatch.setattr(hf, "tensors", lambda *given: {n: by * one if n in names else one for n, one in whole(*given).items()})


def test_an_export_that_translates_otherwise_leaves_nothing(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, "model.decoder.layers.0.fc2.weight", by=-1.0)
    line = refused(RunDir(made.run), made.folder / "spoilt", "--proof-src", made.few)
    assert line.startswith("the export does not translate as the run does: greedy: ")


def test_an_export_that_computes_otherwise_leaves_nothing(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its greedy search finds the same: all logits are a tenth larger."""
    spoil(monkeypatch, "model.decoder.layer_norm.weight", "model.decoder.layer_norm.bias", by=1.1)
    line = refused(RunDir(made.run), made.folder / "spoilt", "--proof-src", made.few, "--tolerance", "100")
    assert "the log-probabilities of the first piece are" in line
    monkeypatch.setattr("mt.export.proof.CLOSE", 100.0)
    line = refused(RunDir(made.run), made.folder / "spoilt", "--proof-src", made.few, "--tolerance", "100")
    assert line.startswith("the export does not compute what the run does: its loss is ")


def test_a_tokenizer_that_cuts_otherwise_leaves_nothing(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def lazy(names: Any, scores: dict[str, float], **options: Any) -> Any:
        return merged(names, {piece: score for piece, score in scores.items() if len(piece) < 4}, **options)

    from mt.export import fast

    merged = fast.merged
    monkeypatch.setattr(fast, "merged", lazy)
    assert re.match("a fast tokenizer would cut '.*' otherwise", refused(RunDir(made.run), made.folder / "spoilt"))


def test_mt_says_where_it_is_from(made: Made) -> None:
    done = mt("translate", "--model", made.out, stdin=b"meri .\n")
    assert (done.code, done.err) == (
        2,
        [f"{made.out}: was exported for transformers, with which mt cannot translate; give the run it is from"],
    )


def test_without_the_library_the_cure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    done = mt("export", "hf", tmp_path, tmp_path / "out", "--no-proof")
    assert (done.code, done.err) == (2, [f"mt export hf needs an extra: {install('export')}"])


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    run = lively_run(tmp_path, TIED, "decode.patience=2.0", "decode.coverage_penalty=0.2")
    done = mt("export", "hf", run.path, tmp_path / "out", "--no-proof")
    assert done.code == 0
    assert done.err.pop() == f"written: {tmp_path / 'out'}; how to use it is in its README.md"
    assert [line.split(" is not in the export: ")[0] for line in done.err] == ["decode.coverage_penalty", "decode.patience"]
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "decode.patience is not in the export" in card.replace("\\_", "_")
