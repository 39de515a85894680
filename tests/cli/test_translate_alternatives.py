"""`mt translate --alternatives K`: K translations a line that differ in the piece after the prefix, most probable piece first."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mt.decode.engine import Beam
from mt.decode.mbr import Mbr
from mt.errors import DecodeError
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt

LONG = " ".join(f"{line.rstrip(' .')} ." for line in toy.sentences(6, seed=9))
LINES = ["bage depe .", "", *toy.sentences(3, seed=5), LONG]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return lively_run(tmp_path_factory.mktemp("lively"), "decode.max_length_factor=0.5", "decode.beam=3", "data.max_pieces=40")


@pytest.fixture
def prefixes(run: RunDir, tmp_path: Path) -> Path:
    """How translations begin: as the best do, with half of their pieces."""
    tgt = Translator.load(run.path).tokenizers.tgt
    texts = [one.text for one in Translator.load(run.path).translate(LINES)]
    toy.write_lines(tmp_path / "prefixes", [tgt.decode(tgt.encode(text)[: len(tgt.encode(text)) // 2]) for text in texts])
    return tmp_path / "prefixes"


def records(run: RunDir, *words: str | Path) -> list[dict[str, Any]]:
    done = mt("translate", "--model", run.path, "--format", "jsonl", *words, stdin=TEXT)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.lines]


@pytest.mark.parametrize("words", ["--greedy", "--beam 3", "--sample"])
def test_each_line_has_as_many_as_were_asked_for(run: RunDir, prefixes: Path, words: str) -> None:
    """Lines in parts too, whose first part has the alternatives."""
    translator = Translator.load(run.path)
    tgt = translator.tokenizers.tgt
    for more in ([], ["--prefix-file", prefixes]):
        begun = prefixes.read_text(encoding="utf-8").splitlines() if more else [""] * len(LINES)
        found = records(run, *words.split(), "--alternatives", "4", *more)
        assert [len(record["hypotheses"]) for record in found] == [4, 0, 4, 4, 4, 4]
        for record, prefix in zip(found, begun, strict=True):
            ids, own = tgt.encode(prefix), record["hypotheses"]
            assert len({one["next"] for one in own}) == len(own)
            assert [one["next_probability"] for one in own] == sorted((one["next_probability"] for one in own), reverse=True)
            for one in own:
                length = one.get("parts", [len(one["ids"])])[0]
                assert one["text"].startswith(prefix)
                assert one["ids"][: len(ids)] == ids
                assert one["next"] == tgt.pieces([*one["ids"][:length], tgt.eos])[len(ids)]
                assert one["next_probability"] == pytest.approx(math.exp(one["token_log_probs"][len(ids)]))


def test_one_of_greedy_search_is_the_translation(run: RunDir) -> None:
    plain = mt("translate", "--model", run.path, "--greedy", stdin=TEXT)
    assert mt("translate", "--model", run.path, "--greedy", "--alternatives", "1", stdin=TEXT).out == plain.out


def test_tsv_has_a_row_for_each(run: RunDir) -> None:
    done = mt("translate", "--model", run.path, "--format", "tsv", "--alternatives", "3", stdin=TEXT)
    rows = [line.split("\t") for line in done.lines]
    assert [row[0] for row in rows] == [*"111", "2", *"333444555666"]
    texts = [one["text"] for record in records(run, "--alternatives", "3") for one in record["hypotheses"]]
    assert [row[2] for row in rows if row[1]] == texts


def test_the_python_api_says_the_same_whatever_the_batches(run: RunDir, prefixes: Path) -> None:
    begun = prefixes.read_text(encoding="utf-8").splitlines()
    translator = Translator.load(run.path)
    found = [translator.translate(LINES, prefixes=begun, alternatives=3, batch_tokens=budget) for budget in (1, 4000)]
    said = records(run, "--alternatives", "3", "--prefix-file", prefixes)
    for one, other, record in zip(*found, said, strict=True):
        assert [h.ids for _, h in one.hypotheses] == [h.ids for _, h in other.hypotheses] == [h["ids"] for h in record["hypotheses"]]
        assert [following.piece for following in one.following] == [h["next"] for h in record["hypotheses"]]
    assert all(one.following == [] for one in translator.translate(LINES))
    with pytest.raises(DecodeError, match="MBR"):
        translator.translate(LINES, alternatives=2, settings=Beam(width=3, n_best=3, mbr=Mbr()))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "--alternatives 3 needs --format jsonl or tsv: plain text is one translation a line"),
        ("--format jsonl --n-best 2", "--alternatives 3 and --n-best 2: each says which translations are given; leave out one"),
        ("--format jsonl --mbr 4", "--alternatives 3 and --mbr 4: each says which translations are given; leave out one"),
        (
            "--input-format po",
            "--alternatives 3 goes with plain text: a po has one translation a unit (--input-format text reads its lines)",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(run: RunDir, words: str, message: str) -> None:
    done = mt("translate", "--model", run.path, "--alternatives", "3", *words.split(), stdin=TEXT)
    assert (done.code, done.out) == (2, b"")
    assert done.err == [message]
