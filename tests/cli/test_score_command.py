"""`mt score`: what is scored equals what `mt translate` reported, and pairs of text have the numbers of a full pass."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mt.forced.given import Given
from mt.forced.score import token_log_probs
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt

LONG = " ".join(f"{line.rstrip(' .')} ." for line in toy.sentences(6, seed=9))
LINES = ["bage depe .", "", *toy.sentences(4, seed=5), LONG, "fide ."]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return lively_run(tmp_path_factory.mktemp("lively"), "decode.max_length_factor=0.5", "decode.beam=3", "data.max_pieces=40")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.src"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.mark.parametrize("words", ["--greedy", "--n-best 3", "--sample --temperature 1.3", "--n-best 2 --length-penalty 0.4"])
def test_ids_of_a_translation_have_what_translate_reported(run: RunDir, source: Path, words: str) -> None:
    """Lines in parts and blank lines too."""
    jsonl, out = source.with_name("t.jsonl"), source.with_name("scores.json")
    assert mt("translate", "--model", run.path, "--input", source, "--output", jsonl, "--format", "jsonl", *words.split()).code == 0
    records = [json.loads(line) for line in jsonl.read_text(encoding="utf-8").splitlines()]
    assert [bool(h.get("parts")) for h in records[6]["hypotheses"]] == [True] * len(records[6]["hypotheses"])
    penalty = ["--length-penalty", "0.4"] if "0.4" in words else []
    done = mt("score", "--model", run.path, "--input", jsonl, "--json", out, "--batch-tokens", "100", *penalty)
    assert done.code == 0
    said = [h | {"line": record["line"]} for record in records for h in record["hypotheses"]]
    found = json.loads(out.read_text(encoding="utf-8"))
    assert [one["line"] for one in found["translations"]] == [h["line"] for h in said]
    for h, one in zip(said, found["translations"], strict=True):
        assert one["ids"] == h["ids"]
        assert (one["log_prob"], one["score"]) == pytest.approx((h["log_prob"], h["score"]), abs=1e-4)
        assert one["token_log_probs"] == pytest.approx(h["token_log_probs"], abs=1e-4)
        assert sum(h["token_log_probs"]) == pytest.approx(h["log_prob"], abs=1e-4)
    assert [line for line in done.lines if line.endswith("\t\t")] == ["2\t\t"]
    tokens = sum(len(h["token_log_probs"]) for h in said)
    assert found["tokens"] == tokens
    assert found["perplexity"] == pytest.approx(math.exp(-sum(h["log_prob"] for h in said) / tokens), rel=1e-4)
    assert done.err[-1].startswith(f"perplexity {found['perplexity']:.4f}")


def test_pairs_of_text(run: RunDir, source: Path) -> None:
    tgt = source.with_name("in.tgt")
    targets = ["", "", *toy.sentences(6, seed=8)]
    tgt.write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")
    done = mt("score", "--model", run.path, "--src", source, "--tgt", tgt, "--length-penalty", "0")
    assert done.code == 0
    translator = Translator.load(run.path)
    src_side, tgt_side = translator.tokenizers
    given = [Given(src_side.encode(a), tgt_side.encode(b)) for a, b in zip(LINES, targets, strict=True) if a or b]
    values = token_log_probs([translator.model], given, translator.tokenizers, device=translator.engine.device, batch_tokens=4096)
    rows = [line.split("\t") for line in done.lines]
    assert [row[0] for row in rows] == [str(number) for number in range(1, 9)]
    assert rows[1][1:] == ["", ""]
    assert [float(row[1]) for row in rows if row[1]] == pytest.approx([sum(one) for one in values], abs=1e-4)
    assert all(row[1] == row[2] for row in rows)


def test_stdin_is_read_like_a_file(run: RunDir, source: Path) -> None:
    jsonl = mt("translate", "--model", run.path, "--input", source, "--format", "jsonl").out
    (path := source.with_name("t.jsonl")).write_bytes(jsonl)
    piped, read = (mt("score", "--model", run.path, "--input", where, stdin=jsonl) for where in ("-", path))
    assert piped.code == read.code == 0
    assert piped.out == read.out != b""


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ("no json", "t.jsonl:2: is no line of `mt translate --format jsonl`"),
        ('{"line": 1}', "t.jsonl:2: is no line of `mt translate --format jsonl`"),
        ('{"line": 1, "source": "bage .", "hypotheses": [{"ids": [9], "parts": [2]}]}', "t.jsonl:2: is no line of"),
        ('{"line": 1, "source": "bage .", "hypotheses": [{"ids": [99999]}]}', "t.jsonl:2: the model has no id 99999"),
        ('{"line": 1, "source": "bage .", "hypotheses": [{"ids": [9, 9], "parts": [1, 1]}]}', "t.jsonl:2: was translated in 2 parts"),
    ],
)
def test_what_is_no_translation_is_refused_by_file_and_line(run: RunDir, tmp_path: Path, record: str, complaint: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"line": 1, "source": "", "hypotheses": []}}\n{record}\n', encoding="utf-8")
    done = mt("score", "--model", run.path, "--input", path)
    assert done.code == 2
    assert complaint in done.err[-1]


def test_options_that_do_not_go_together(run: RunDir, source: Path) -> None:
    for words in ([], ["--src", source], ["--src", source, "--tgt", source, "--input", source]):
        done = mt("score", "--model", run.path, *words)
        assert (done.code, done.err) == (
            2,
            ["nothing to score: give --src FILE --tgt FILE, or --input FILE that `mt translate --format jsonl` wrote"],
        )
    (short := source.with_name("short")).write_text("a\n", encoding="utf-8")
    done = mt("score", "--model", run.path, "--src", source, "--tgt", short)
    assert (done.code, done.err) == (2, [f"{source} has 8 lines, {short} has 1: line n of one must answer line n of the other"])
    assert mt("score", "--model", run.path, "--input", source, "--length-penalty", "nan").code == 2
