"""CTranslate2 as an engine keeps mt's definitions: ends counted, no specials, a limit for each sentence; what it cannot do is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mt.constraints.control import Control
from mt.constraints.glossary import Glossary, Term
from mt.decode.ct2_engine import Ct2Engine
from mt.decode.engine import Beam, Sampling
from mt.decode.search_engine import SearchEngine
from mt.errors import DecodeError, MTError, RunError, TooLargeError
from mt.export.ct2 import export
from mt.forced.given import Given
from mt.forced.score import token_log_probs
from mt.formats.placeholders import Protected
from mt.search.step import Hypothesis
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, taught_run

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")


class Both(NamedTuple):
    """An untrained model with large weights, which goes on to any limit, in both programs."""

    native: Translator
    exported: Translator
    sources: list[list[int]]

    @property
    def engine(self) -> Ct2Engine:
        assert isinstance(self.exported.engine, Ct2Engine)
        return self.exported.engine


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("lively")
    run = lively_run(folder)
    export(run.path, folder / "exported")
    native = Translator.load(run.path, device="cpu", precision="fp32")
    sources = native.tokenizers.src.encode_batch(toy.sentences(60, seed=5, shortest=1, longest=9))
    return Both(native, Translator.load(folder / "exported", device="cpu"), sources)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("taught")
    run = taught_run(folder)
    export(run.path, folder / "exported")
    native = Translator.load(run.path, device="cpu", precision="fp32")
    sources = native.tokenizers.src.encode_batch(toy.sentences(40, seed=5, shortest=1, longest=9))
    return Both(native, Translator.load(folder / "exported", device="cpu"), sources)


def searched(engine: SearchEngine, both: Both, width: int, limits: list[int]) -> list[Hypothesis]:
    return [found[0] for found in engine.search(both.sources, Beam(width), limits=limits)]


def test_a_limit_forces_an_end_and_counts_it(both: Both) -> None:
    limits = [1 + place % 7 for place in range(len(both.sources))]
    ours, theirs = (searched(one.engine, both, 1, limits) for one in (both.native, both.exported))
    assert sum(one.truncated for one in ours) > len(ours) / 2
    assert [one.ids for one in theirs] == [one.ids for one in ours]
    assert [one.truncated for one in theirs] == [one.truncated for one in ours]
    for one, other in zip(ours, theirs, strict=True):
        assert other.log_prob == pytest.approx(one.log_prob, abs=1e-3)
        assert other.score == pytest.approx(one.score, abs=1e-3)


@pytest.mark.parametrize("width", [1, 4])
def test_each_sentence_has_its_own_limit_whatever_it_is_with(both: Both, width: int) -> None:
    limits = [2 + 3 * (place % 5) for place in range(len(both.sources))]
    found = searched(both.engine, both, width, limits)
    assert all(len(one.ids) < limit for one, limit in zip(found, limits, strict=True))
    assert any(len(one.ids) == limit - 1 for one, limit in zip(found, limits, strict=True))
    alone = [
        both.engine.search([ids], Beam(width), limits=[limit])[0][0].ids for ids, limit in zip(both.sources[:10], limits, strict=False)
    ]
    assert alone == [one.ids for one in found[:10]]


def test_special_ids_are_not_given_and_would_be(both: Both) -> None:
    tgt = both.native.tokenizers.tgt
    never = {tgt.pad, tgt.unk, tgt.bos, tgt.eos}
    pieces = [both.native.tokenizers.src.pieces(ids) for ids in both.sources]
    model = ctranslate2.Translator(str(both.engine.folder), device="cpu")
    unasked = {piece for found in model.translate_batch(pieces, beam_size=4, max_decoding_length=30) for piece in found.hypotheses[0]}
    assert unasked & set(tgt.pieces(sorted(never)))
    assert not never & {i for one in searched(both.engine, both, 4, [30] * len(both.sources)) for i in one.ids}


@pytest.mark.parametrize("width", [1, 4])
def test_scores_are_those_of_mt_score(taught: Both, width: int) -> None:
    found = searched(taught.engine, taught, width, [60] * len(taught.sources))
    given = [Given(ids, one.ids) for ids, one in zip(taught.sources, found, strict=True)]
    scores = token_log_probs([taught.native.model], given, taught.native.tokenizers, device=taught.native.engine.device, batch_tokens=4096)
    for one, tokens in zip(found, scores, strict=True):
        assert len(one.tokens) == len(one.ids) + 1
        assert one.tokens == pytest.approx(tokens, abs=1e-4)
        assert one.log_prob == pytest.approx(sum(tokens), abs=1e-4)
        assert one.score == pytest.approx(sum(tokens) / (len(one.ids) + 1), abs=1e-4)


def test_patience_goes_over(taught: Both) -> None:
    limits = [60] * len(taught.sources)
    settings = Beam(3, patience=2.0, n_best=6)
    ours, theirs = (one.engine.search(taught.sources, settings, limits=limits) for one in (taught.native, taught.exported))
    counts = [sum(map(len, side)) for side in (ours, theirs)]
    assert counts[0] > 3 * len(taught.sources)
    assert counts[1] == pytest.approx(counts[0], rel=0.05)


REFUSED: dict[str, dict[str, Any]] = {
    "--sample": {"settings": Sampling()},
    "--coverage-penalty": {"settings": Beam(4, coverage_penalty=0.2)},
    "--alternatives": {"alternatives": 2},
    "--alignment": {"align": True},
    "--min-length": {"control": Control(min_length=3)},
    "--no-repeat-ngram": {"control": Control(no_repeat_ngram=3)},
    "--repetition-penalty": {"control": Control(repetition_penalty=1.5)},
    "--ban": {"control": Control(banned=["a"])},
    "--glossary": {"control": Control(glossary=Glossary([Term("a", "b")]))},
    "--protect": {"control": Control(protect=Protected(("numbers",)))},
    "--retry-loops": {"control": Control(retry_loops=True)},
    "--prefix-file": {"prefixes": ["a"]},
    "--require": {"required": [["a"]]},
}


@pytest.mark.parametrize("option", REFUSED)
def test_what_it_cannot_do_is_refused_by_name(taught: Both, option: str) -> None:
    taught.native.translate(["a ."], **REFUSED[option])
    with pytest.raises(DecodeError) as refused:
        taught.exported.translate(["a ."], **REFUSED[option])
    assert str(refused.value).startswith(f"{option}: ")
    assert "\n" not in str(refused.value)


def test_too_little_memory_is_told_in_a_line(taught: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def translate_batch(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("CUDA failed with error out of memory")

    monkeypatch.setattr(taught.engine, "_model", Full())
    with pytest.raises(TooLargeError, match="too little memory for a batch of 40 sentences"):
        searched(taught.engine, taught, 1, [5] * 40)


def test_what_needs_the_model_itself_says_so(taught: Both) -> None:
    with pytest.raises(DecodeError, match="give the run that it was made from"):
        taught.exported.model  # noqa: B018
    with pytest.raises(RunError, match="only runs make an ensemble"):
        Translator.ensemble([taught.engine.folder, taught.engine.folder])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"checkpoint": "last"}, "--checkpoint last: .* is an export"),
        ({"weights": "raw"}, "--weights raw: .* is an export"),
        ({"device": "mps"}, "device mps: CTranslate2 does not run there"),
    ],
)
def test_what_an_export_has_not_is_refused(taught: Both, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(MTError, match=says):
        Translator.load(taught.engine.folder, **asked)


def test_a_damaged_or_strange_folder_is_told(taught: Both, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in taught.engine.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    facts = folder / "mt.json"
    whole = facts.read_text(encoding="utf-8")
    for old, new, says in (
        ('"format": 2', '"format": 3', "exported in format 3"),
        ('"program": "ctranslate2"', '"program": "another"', "exported for another"),
        ("{", "", "damaged"),
    ):
        facts.write_text(whole.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(RunError, match=says):
            Translator.load(folder)
    facts.write_text(whole, encoding="utf-8")
    (folder / "model.bin").write_bytes(b"no model")
    with pytest.raises(RunError, match=r"model.bin: is damaged"):
        Translator.load(folder)
    older = {name: value for name, value in json.loads(whole).items() if name != "files"}  # such as had no fingerprints
    facts.write_text(json.dumps(older), encoding="utf-8")
    with pytest.raises(RunError, match="CTranslate2 cannot run it"):
        Translator.load(folder)
