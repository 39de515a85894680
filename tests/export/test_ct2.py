"""CTranslate2 computes from an export what the model computes: the same probabilities, the same searches, whatever the options."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from mt.decode.engine import Beam, ModelStep
from mt.export.ct2 import export
from mt.extras import install
from mt.forced.given import Given
from mt.forced.score import token_log_probs
from mt.model.packed import unpack
from mt.model.transformer import Transformer
from mt.rundir import AGAIN
from mt.search.beam import beam_search
from mt.search.greedy import greedy_search
from mt.search.step import Hypothesis
from mt.translator import Translator
from tests import toy
from tests.runs import train
from tests.translating import lively_run, mt

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")

OPTIONS = {
    "default": (),
    "post-norm, gelu": ("model.norm=post", "model.activation=gelu"),
    "swiglu": ("model.activation=swiglu",),
    "rms": ("model.norm_kind=rms",),
    "rope": ("model.positions=rope",),
    "all of the newer, tied": (
        *(f"model.{it}" for it in ("norm_kind=rms", "activation=swiglu", "positions=rope", "tied_embeddings=true")),
    ),
    "two vocabularies": ("tokenizer.joint=false", "model.decoder_layers=2"),
    "two vocabularies, tied, post-norm": ("tokenizer.joint=false", "model.tied_embeddings=true", "model.norm=post"),
}
LIMIT = 40
PAGE = Path(__file__).parents[2] / "docs" / "export.md"


class Twins(NamedTuple):
    """One model in two programs, and the folder of the second."""

    ours: Translator
    theirs: Any
    folder: Path

    def pieces(self, sources: Sequence[Sequence[int]]) -> list[list[str]]:
        """As the other program is given them."""
        return [self.ours.tokenizers.src.pieces(ids) for ids in sources]

    def ids(self, pieces: Sequence[str]) -> list[int]:
        """Of what the other program gave."""
        tgt = self.ours.tokenizers.tgt
        place = {piece: i for i, piece in enumerate(tgt.pieces(range(tgt.size)))}
        return [place[piece] for piece in pieces]


def twins(run: Path, folder: Path) -> Twins:
    export(run, folder)
    return Twins(
        Translator.load(run, device="cpu", precision="fp32"),
        ctranslate2.Translator(str(folder), device="cpu", compute_type="float32"),
        folder,
    )


@pytest.fixture(scope="module", params=OPTIONS.values(), ids=OPTIONS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """A lively model with some options."""
    folder = tmp_path_factory.mktemp("lively")
    return twins(lively_run(folder, *request.param).path, folder / "exported")


def sources(both: Twins, count: int = 200, *, shortest: int = 1, longest: int = 20) -> list[list[int]]:
    """Ids of sentences of many lengths, the shortest and the longest of which are in one batch."""
    return both.ours.tokenizers.src.encode_batch(toy.sentences(count, seed=5, shortest=shortest, longest=longest))


def search(both: Twins, batch: Sequence[Sequence[int]], *, width: int, alpha: float = 1.0, limit: int) -> list[Hypothesis]:
    """The best hypotheses over all ids: what the other program is not to give has no part in its softmax."""
    src, tgt = both.ours.tokenizers
    step = ModelStep(both.ours.model, torch.device("cpu"))
    options = {"bos": tgt.bos, "eos": tgt.eos, "limits": [limit] * len(batch), "length_penalty": alpha}
    with torch.inference_mode():
        state = step.start([[*ids, src.eos] for ids in batch], pad=src.pad)
        if width == 1:
            return greedy_search(step, state, **options)
        return [found[0] for found in beam_search(step, state, width=width, **options)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """A model that knows the toy language."""
    folder = tmp_path_factory.mktemp("trained")
    toy.write_corpus(folder)
    assert train(toy.config(folder, "train.validation={every: 200, samples: 0}")).code == 0
    return twins(folder / "run", folder / "exported")


def test_given_outputs_are_as_probable(both: Twins) -> None:
    given = sources(both)
    outputs = both.ours.tokenizers.tgt.encode_batch([toy.translation(text) for text in toy.sentences(200, seed=6, longest=12)])
    pairs = [Given(*pair) for pair in zip(given, outputs, strict=True)]

    def values(model: Transformer) -> Tensor:
        found = token_log_probs([model], pairs, both.ours.tokenizers, device=torch.device("cpu"), batch_tokens=4096)
        return torch.tensor([value for one in found for value in one], dtype=torch.float64)

    found = both.theirs.score_batch(both.pieces(given), [both.ours.tokenizers.tgt.pieces(ids) for ids in outputs])
    theirs = torch.tensor([value for one in found for value in one.log_probs], dtype=torch.float64)
    exact = values(unpack(deepcopy(both.ours.model)).double())
    rounding = (values(both.ours.model) - exact).abs().max()  # of large weights, in float32
    assert (theirs - exact).abs().max() < 1e-4 + 2 * rounding


def test_greedy_search_finds_the_same(both: Twins) -> None:
    batch = sources(both)
    ours = search(both, batch, width=1, limit=LIMIT + 1)  # one more for the end
    theirs = both.theirs.translate_batch(both.pieces(batch), beam_size=1, min_decoding_length=0, max_decoding_length=LIMIT)
    same = [one.ids == both.ids(other.hypotheses[0]) for one, other in zip(ours, theirs, strict=True)]
    assert len({tuple(one.ids) for one in ours}) > 50
    assert sum(same) >= len(same) - 2  # near ties, each of which decides all that comes after


@pytest.mark.parametrize(("width", "alpha"), [(1, 1.0), (5, 1.0), (5, 0.6)])
def test_a_trained_model_translates_the_same(trained: Twins, width: int, alpha: float) -> None:
    batch = sources(trained, shortest=3, longest=8)
    ours = search(trained, batch, width=width, alpha=alpha, limit=100)
    options = {"beam_size": width, "length_penalty": alpha, "min_decoding_length": 0, "return_scores": True}
    theirs = trained.theirs.translate_batch(trained.pieces(batch), **options)
    assert not any(one.truncated for one in ours)
    for one, other in zip(ours, theirs, strict=True):
        near = other.scores[0] == pytest.approx(one.score, abs=1e-4)
        assert near, "the same score, or of two near ties the other"
    assert sum(one.ids == trained.ids(other.hypotheses[0]) for one, other in zip(ours, theirs, strict=True)) >= len(batch) - 2


def test_the_page_shows_how_it_is_asked(trained: Twins, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].partition("```")[0]
    line = toy.sentences(1, seed=8)[0]
    monkeypatch.chdir(trained.folder.parent)
    exec(code.replace("my-ct2", trained.folder.name).replace("A dog runs on the beach.", line), {})
    assert capsys.readouterr().out == f"{trained.ours.translate([line])[0].text}\n"


def test_int8_is_smaller_and_near(trained: Twins, tmp_path: Path) -> None:
    small = tmp_path / "deep" / "small"
    done = mt("export", "ct2", trained.folder.parent / "run", small, "--quantization", "int8", "--tolerance", "100")
    assert done.code == 0
    assert small.joinpath("model.bin").stat().st_size < 0.5 * trained.folder.joinpath("model.bin").stat().st_size
    pieces = trained.pieces(sources(trained, 50, shortest=3, longest=8))
    found = [ctranslate2.Translator(str(folder), device="cpu").translate_batch(pieces) for folder in (small, trained.folder)]
    assert sum(a.hypotheses == b.hypotheses for a, b in zip(*found, strict=True)) > 15


def test_tags_go_before_the_source(tmp_path: Path) -> None:
    corpora = (
        "data.train=[{src: train.src, tgt: train.trg, langs: {src: a, tgt: b}}, {src: train.trg, tgt: train.src, langs: {src: b, tgt: a}}]"
    )
    both = twins(lively_run(tmp_path, corpora, "data.dev=none").path, tmp_path / "exported")
    facts = json.loads((both.folder / "mt.json").read_text(encoding="utf-8"))
    assert facts["source"]["before"] == {"a": "<2a>", "b": "<2b>"}
    assert facts["translate_batch"]["suppress_sequences"][2:] == [["<2b>"], ["<2a>"]]  # by their ids
    source, tag = sources(both, 1)[0], facts["source"]["before"]["b"]
    ours = both.ours.engine.search([[both.ours.tokenizers.src.tag("b"), *source]], Beam(1), limits=[LIMIT + 1])[0][0]
    options = facts["translate_batch"] | {"beam_size": 1, "max_decoding_length": LIMIT}
    theirs = both.theirs.translate_batch([[tag, *both.pieces([source])[0]]], **options)[0].hypotheses[0]
    assert ours.ids == both.ids(theirs)
    exported = Translator.load(both.folder, device="cpu")
    lines = toy.sentences(10, seed=5)
    assert exported.targets == both.ours.targets
    assert [one.text for one in exported.translate(lines, to="b", beam=1)] == [
        one.text for one in both.ours.translate(lines, to="b", beam=1)
    ]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    run = lively_run(tmp_path)
    full, empty = tmp_path / "full", tmp_path / "empty"
    for folder in (full, empty):
        folder.mkdir()
    full.joinpath("mine").touch()
    done = mt("export", "ct2", run.path, full)
    assert (done.code, done.err) == (2, [f"{full}: is there already; remove it, or give another folder"])
    assert os.listdir(full) == ["mine"]
    assert mt("export", "ct2", run.path, empty, "--no-proof").code == 0
    within = mt("export", "ct2", run.path, run.path / "ct2", "--no-proof")
    assert (within.code, within.err) == (2, [f"{run.path / 'ct2'}: lies in the run; give a folder outside of it"])
    twice = mt("export", "ct2", run.path, run.path, tmp_path / "twice")
    assert (twice.code, twice.err) == (2, [f"{tmp_path / 'twice'}: one run at a time: mt export ct2 RUN OUT"])
    assert {"model.bin", "config.json", "tokenizer.model", "mt.json"} < set(os.listdir(empty))
    assert [path.name for path in tmp_path.glob(".*")] == []
    (empty / "mt.json").unlink()
    assert mt("translate", "--model", empty).err[0].endswith("mt.json is missing; export the run again")


def test_without_the_library_the_cure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    done = mt("export", "ct2", tmp_path, tmp_path / "exported")
    assert (done.code, done.err) == (2, [f"CTranslate2 is an extra: {install('export')}"])


def test_a_file_that_is_not_as_it_was_written_is_named(tmp_path: Path) -> None:
    """Of what is damaged within, the library itself may say nothing."""
    folder = tmp_path / "exported"
    export(lively_run(tmp_path).path, folder)
    names = set(os.listdir(folder)) - {"mt.json", "mt.yaml", "tokenizer.model"}
    assert set(json.loads((folder / "mt.json").read_text(encoding="utf-8"))["files"]) == names
    for name in names:
        whole = (file := folder / name).read_bytes()
        half = len(whole) // 2
        file.write_bytes(whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :])
        assert mt("translate", "--model", folder).err == [f"{file}: is damaged, or is not of this export; {AGAIN}"]
        file.unlink()
        assert mt("translate", "--model", folder).err == [f"{file}: is missing; {AGAIN}"]
        file.write_bytes(whole)
    facts = json.loads((folder / "mt.json").read_text(encoding="utf-8"))
    (folder / "mt.json").write_text(json.dumps({**facts, "files": [1]}), encoding="utf-8")
    assert mt("translate", "--model", folder).err == [f"{folder / 'mt.json'}: is damaged; {AGAIN}"]
    del facts["files"]
    (folder / "mt.json").write_text(json.dumps(facts), encoding="utf-8")
    assert mt("translate", "--model", folder, stdin=b"kane .\n").code == 0, "older exports have none"
    (folder / "mt.yaml").rename(folder / "elsewhere")
    assert mt("translate", "--model", folder).err[0].startswith(f"{folder / 'mt.yaml'}: is missing; ")


def test_mt_bench_measures_nothing_where_a_search_is_not_had(tmp_path: Path) -> None:
    folder = tmp_path / "exported"
    export(lively_run(tmp_path).path, folder)
    files = "--src", tmp_path / "test.src", "--ref", tmp_path / "test.trg", "--max-lines", "2"
    done = mt("bench", "--model", folder, *files, "--systems", "greedy,sample")
    assert (done.code, done.lines) == (2, [])
    assert done.err[0].startswith("system sample (--systems): --sample: CTranslate2 has no generator")


def test_nothing_tells_where_the_sample_lay(tmp_path: Path) -> None:
    run, folder, mine = lively_run(tmp_path).path, tmp_path / "exported", tmp_path / "a folder of mine"
    mine.mkdir()
    toy.write_lines(mine / "few.src", toy.sentences(2))
    assert mt("export", "ct2", run, folder, "--proof-src", mine / "few.src", "--tolerance", "100").code == 0
    text = (folder / "mt.json").read_text(encoding="utf-8")
    assert json.loads(text)["proof"]["sample"] == "few.src"
    assert tmp_path.name not in text
