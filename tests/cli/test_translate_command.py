"""`mt translate`: the same as the Python API, in files, pipes and a terminal; a user's mistake is one line and leaves nothing behind."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from mt.cli.remarks import named
from mt.cli.text_output import written
from mt.decode.engine import Beam, Sampling
from mt.decode.translation import Translation
from mt.rundir import RunDir
from mt.translator import Translator
from tests import toy
from tests.translating import lively_run, mt

LINES = ["bage depe .", "", *toy.sentences(4, seed=5), "\u00a0", "fide ."]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    short = ("decode.max_length_factor=0.5", "decode.max_length_extra=6", "decode.beam=3", "decode.n_best=2", "data.max_pieces=40")
    return lively_run(tmp_path_factory.mktemp("lively"), *short, checkpoints=(1, 2))


@pytest.fixture(scope="module")
def translator(run: RunDir) -> Translator:
    return Translator.load(run.path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.src"
    path.write_bytes(TEXT)
    return path


def records(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


# ── what comes out ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_text_is_what_the_python_api_gives(run: RunDir, translator: Translator, source: Path) -> None:
    done = mt("translate", "--model", run.path, "--input", source)
    assert done.code == 0
    assert done.lines == [one.text for one in translator.translate(LINES)]
    assert done.lines[1] == done.lines[6] == ""


@pytest.mark.parametrize(
    ("words", "settings", "seed"),
    [
        ("", Beam(width=3, n_best=2), 1),
        ("--greedy", Beam(width=1), 1),
        ("--beam 1", Beam(width=1), 1),
        ("--beam 4 --n-best 3 --length-penalty 0.5", Beam(width=4, n_best=3, length_penalty=0.5), 1),
        ("--sample", Sampling(), 1),
        ("--sample --seed 0 --temperature 1.5", Sampling(temperature=1.5), 0),
        ("--sample --seed 7 --top-k 5 --top-p 0.8", Sampling(top_k=5, top_p=0.8), 7),
        ("--sample --temperature 0 --length-penalty 0", Sampling(temperature=0, length_penalty=0), 1),
    ],
)
def test_options_are_the_settings_of_the_python_api(
    run: RunDir, translator: Translator, source: Path, words: str, settings: Beam | Sampling, seed: int
) -> None:
    done = mt("translate", "--model", run.path, "--input", source, "--format", "jsonl", *words.split())
    assert done.code == 0
    found = [[(h["text"], h["ids"], h["log_prob"], h["score"]) for h in record["hypotheses"]] for record in records(done.lines)]
    expected = translator.translate(LINES, settings=settings, seed=seed)
    assert found == [[(text, h.ids, h.log_prob, h.score) for text, h in one.hypotheses] for one in expected]


def test_seed_0_is_a_seed_of_its_own(run: RunDir) -> None:
    zero, one, default = (
        mt("translate", "--model", run.path, "--sample", *words, stdin=TEXT).out for words in (["--seed", "0"], ["--seed", "1"], [])
    )
    assert zero != one == default


@pytest.mark.parametrize("alpha", ["0", "0.7"])
def test_jsonl(run: RunDir, source: Path, alpha: str) -> None:
    done = mt("translate", "--model", run.path, "--input", source, "--format", "jsonl", "--n-best", "3", "--length-penalty", alpha)
    found = records(done.lines)
    assert [(record["line"], record["source"]) for record in found] == [*enumerate(LINES, start=1)]
    assert [len(record["hypotheses"]) for record in found] == [3, 0, 3, 3, 3, 3, 0, 3]
    for record in found:
        scores = [h["score"] for h in record["hypotheses"]]
        assert scores == sorted(scores, reverse=True)
        for h in record["hypotheses"]:
            assert h["score"] == pytest.approx(h["log_prob"] / (len(h["ids"]) + 1) ** float(alpha))
            assert h["log_prob"] < 0


def test_jsonl_keeps_letters_as_they_are(run: RunDir) -> None:
    line = 'mäka "漢" \u2028 \\ .'
    done = mt("translate", "--model", run.path, "--format", "jsonl", stdin=f"{line}\n".encode())
    assert records(done.lines)[0]["source"] == line
    assert "mäka" in done.lines[0]


def test_tsv(run: RunDir, source: Path) -> None:
    done = mt("translate", "--model", run.path, "--input", source, "--format", "tsv", "--n-best", "2")
    rows = [line.split("\t") for line in done.lines]
    json_found = records(mt("translate", "--model", run.path, "--input", source, "--format", "jsonl", "--n-best", "2").lines)
    expected = [
        [str(r["line"]), f"{h['score']:.6f}", h["text"]] for r in json_found for h in r["hypotheses"] or [{"score": 0.0, "text": ""}]
    ]
    assert [row for row in rows if row[2]] == [row for row in expected if row[2]]
    assert [row for row in rows if not row[1]] == [["2", "", ""], ["7", "", ""]]


def test_as_many_translations_as_the_config_says(run: RunDir, source: Path) -> None:
    done = mt("translate", "--model", run.path, "--input", source, "--format", "jsonl")
    assert {len(record["hypotheses"]) for record in records(done.lines)} == {0, 2}
    assert len(mt("translate", "--model", run.path, "--input", source).lines) == len(LINES)


@pytest.mark.parametrize("text", [b"", b"\xef\xbb\xbf"])
def test_nothing_in_nothing_out(run: RunDir, tmp_path: Path, text: bytes) -> None:
    assert mt("translate", "--model", run.path, stdin=text)[:2] == (0, b"")
    assert mt("translate", "--model", run.path, "--output", tmp_path / "out", stdin=text).code == 0
    assert (tmp_path / "out").read_bytes() == b""


# ── where it comes from and goes ────────────────────────────────────────────────────────────────────────────────────


def test_file_pipe_and_compressed_file_are_the_same(run: RunDir, source: Path, tmp_path: Path) -> None:
    packed = tmp_path / "in.packed"
    packed.write_bytes(gzip.compress(TEXT))
    first = mt("translate", "--model", run.path, "--input", source)
    for words, stdin in (["--input", packed], b""), ([], TEXT), (["--input", "-"], TEXT), (["--output", "-"], TEXT):
        assert mt("translate", "--model", run.path, *words, stdin=stdin) == first
    done = mt("translate", "--model", run.path, "--input", source, "--output", tmp_path / "out")
    assert (done.code, done.out, done.err) == (0, b"", first.err)
    assert (tmp_path / "out").read_bytes() == first.out


def test_a_terminal_is_answered_line_by_line(run: RunDir, translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    typed, seen = LINES[:4], []

    class Typist(io.BytesIO):
        """Types the next line only when asked for it."""

        count = 0

        def read1(self, _size: int | None = -1, /) -> bytes:
            line = "".join(f"{line}\n" for line in typed[self.count : self.count + 1])
            self.count += 1
            return line.encode()

    def watched(translation: Translation, *rest: Any) -> str:
        seen.append(typist.count)
        return written(translation, *rest)

    typist = Typist()
    monkeypatch.setattr("mt.cli.text_output.written", watched)
    done = mt("translate", "--model", run.path, typed=typist)
    assert done.lines == [one.text for one in translator.translate(typed)]
    assert seen == [1, 2, 3, 4]
    assert done.err[0] == "reading from the terminal, a sentence a line; Ctrl-D ends"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output", "missing/out"], "--output missing/out: there is no folder missing"),
        (["--output", "."], ".: "),
        (["--input", "in.srd"], "--input in.srd: no such file; did you mean in.src?"),
        (["--input", "."], ".: "),
    ],
)
def test_files_that_cannot_be_are_refused_before_the_model_is_loaded(
    run: RunDir, source: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source.parent)
    monkeypatch.setattr(Translator, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    done = mt("translate", "--model", run.path, "--input", source, *words)
    assert (done.code, done.out, len(done.err)) == (2, b"", 1)
    assert done.err[0].startswith(said)
    assert [path.name for path in source.parent.iterdir()] == ["in.src"]


def test_a_misspelt_input_gets_the_nearest_name(run: RunDir, source: Path) -> None:
    done = mt("translate", "--model", run.path, "--input", source.with_name("in.scr"))
    assert done.err == [f"--input {source.with_name('in.scr')}: no such file; did you mean {source}?"]


@pytest.mark.parametrize("before", [None, b"an older translation\n"])
def test_input_that_breaks_half_way_leaves_the_output_as_it_was(
    run: RunDir, tmp_path: Path, before: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mt.translator.WINDOW", 2)
    source, output = tmp_path / "in.src", tmp_path / "out"
    source.write_bytes(b"bage .\ndepe .\nfide .\ncaf\xe9 .\n")
    if before is not None:
        output.write_bytes(before)
    done = mt("translate", "--model", run.path, "--input", source, "--output", output)
    assert (done.code, done.out) == (2, b"")
    assert done.err == [f"{source}:4: byte 0xE9 is not UTF-8 (at byte 4 of the line); save the file as UTF-8"]
    assert {path.name for path in tmp_path.iterdir()} == {"in.src", *(["out"] if before else [])}
    if before is not None:
        assert output.read_bytes() == before


def test_a_broken_archive(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "in.gz").write_bytes(gzip.compress(TEXT * 50)[:-20])
    done = mt("translate", "--model", run.path, "--input", tmp_path / "in.gz", "--output", tmp_path / "out")
    assert (done.code, len(done.err)) == (2, 1)
    assert done.err[0].startswith(f"{tmp_path / 'in.gz'}: the compressed file ends too early")
    assert not (tmp_path / "out").exists()


def test_windows_of_lines_go_out_as_they_are_done(run: RunDir, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many lines in small windows give what one window gives."""
    expected = mt("translate", "--model", run.path, "--input", source).out
    monkeypatch.setattr("mt.translator.WINDOW", 3)
    assert mt("translate", "--model", run.path, "--input", source).out == expected


# ── which model ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_checkpoints(run: RunDir) -> None:
    first, second, best, last, default = (
        mt("translate", "--model", run.path, *words, stdin=TEXT).out
        for words in (["--checkpoint", "1"], ["--checkpoint", "2"], ["--checkpoint", "best"], ["--checkpoint", "last"], [])
    )
    assert first == best == default != second == last


@pytest.mark.parametrize("which", ["3", "average", "newest", "step-00000003", "", ".."])
def test_a_checkpoint_that_is_not_there(run: RunDir, which: str) -> None:
    done = mt("translate", "--model", run.path, "--checkpoint", which, stdin=TEXT)
    assert (done.code, done.out) == (2, b"")
    assert done.err == [f"{run.path}: no checkpoint {which!r}; there are: best, last, 1, 2"]


def test_a_directory_that_is_no_run(run: RunDir, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", run.checkpoints):
        done = mt("translate", "--model", path, stdin=TEXT)
        assert (done.code, done.out) == (2, b"")
        about = f"{path}: not a run (it has no config.yaml)" if path.is_dir() else f"--model {path}: no such folder"
        assert done.err == [f"{about}; give the directory that `mt train` wrote"]
    meant = mt("translate", "--model", run.path.with_name(f"{run.path.name}x"), stdin=TEXT)
    assert meant.err[0].endswith(f"no such folder; did you mean {run.path}?")
    without = mt("translate", run.path, "in.en", stdin=TEXT)
    assert without.err[-1].endswith(f"write --model {run.path} --input in.en")


# ── options that make no sense ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--greedy --beam 4", "--greedy and --beam 4: give one of the two"),
        ("--sample --beam 4", "--sample and --beam 4: give one of the two"),
        ("--sample --greedy", "--sample and --greedy: give one of the two"),
        ("--temperature 0.5", "--temperature goes with --sample: add it"),
        ("--top-k 0", "--top-k goes with --sample: add it"),
        ("--seed 0", "--seed goes with --sample: add it"),
        ("--sample --n-best 2", "--n-best 2 needs --format jsonl or tsv: plain text is one translation a line"),
        ("--sample --format tsv --n-best 1000000", "n-best 1000000: give a number of samples from 1 to 10000"),
        ("--mbr-utility bleu", "--mbr-utility bleu goes with --mbr N, the number of candidates: add it"),
        ("--mbr 4 --greedy", "--mbr 4 chooses among several, and greedy search has one: give --beam 4 or --sample"),
        ("--format tsv --mbr 4 --n-best 5", "--n-best 5 of --mbr 4: ask for fewer, or give more candidates"),
        ("--n-best 2", "--n-best 2 needs --format jsonl or tsv: plain text is one translation a line"),
        ("--format jsonl --n-best 5", "n-best 5 is larger than beam 3: ask for fewer, or widen the beam"),
        ("--format jsonl --n-best 5 --beam 4", "n-best 5 is larger than beam 4: ask for fewer, or widen the beam"),
        ("--format tsv --n-best 2 --greedy", "n-best 2 is larger than beam 1: ask for fewer, or widen the beam"),
        ("--sample --temperature -1", "temperature -1: give a number from 0 (greedy) to 1000000 (all tokens alike)"),
        ("--sample --temperature 1e39", "temperature 1e+39: give a number from 0 (greedy) to 1000000 (all tokens alike)"),
        ("--beam 1000000000", "beam 1000000000: give a width from 1 (greedy) to 10000"),
        ("--batch-tokens 1000000000", "batch-tokens 1000000000: give a number from 1 to 1000000"),
        ("--format jsonl --n-best 1000000000", "n-best 1000000000 is larger than beam 3: ask for fewer, or widen the beam"),
        ("new.en", "new.en: a file goes behind its option: --input new.en"),
        ("--sample --top-p 0", "top-p 0: give the probability to keep, above 0 and at most 1 (all)"),
        ("--device abacus", "device abacus: no such device, a GPU is cuda (mps on a Mac); there are: cpu"),
        ("--length-penalty nan", "--length-penalty nan: should be from 0 to 10"),
        ("--length-penalty 11", "--length-penalty 11: should be from 0 to 10"),
        ("--length-penalty -1", "--length-penalty -1: should be from 0 to 10"),
        ("--weights ema", "has no moving average (train.ema was 0); use --weights raw"),
    ],
)
def test_contradictions_are_one_line(run: RunDir, tmp_path: Path, words: str, message: str) -> None:
    done = mt("translate", "--model", run.path, "--output", tmp_path / "out", *words.split(), stdin=TEXT)
    assert (done.code, done.out, len(done.err)) == (2, b"", 1)
    assert message in done.err[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["--beam 0", "--format xml", "--precision fp8", "--n-best none", "--batch-tokens 0"])
def test_values_out_of_range_name_the_option(run: RunDir, words: str) -> None:
    done = mt("translate", "--model", run.path, *words.split(), stdin=TEXT)
    assert (done.code, done.out) == (2, b"")
    assert words.split()[0] in done.err[-1]


# ── warnings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_warnings_name_the_lines(run: RunDir, translator: Translator) -> None:
    lines = ["bage .", "bage depe fide . " * 40, "€ bage € .", "", "§"]
    done = mt("translate", "--model", run.path, stdin="".join(f"{line}\n" for line in lines).encode())
    truncated = [number for number, one in enumerate(translator.translate(lines), start=1) if "truncated" in one.flags]
    assert done.code == 0
    assert done.err == [
        "warning: line 2: longer than 40 pieces (data.max_pieces), translated in parts",
        f"warning: {named(truncated)}: the translation was ended by the length limit (decode.max_length_factor)",
        "warning: 3 unknown in 2 lines: characters that the tokenizer has no piece for (lines 3, 5)",
    ]


def test_without_trouble_there_is_nothing_on_stderr(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Translator, "limit", lambda *_: 500)
    assert mt("translate", "--model", run.path, stdin=b"\n\n")[1:] == (b"\n\n", [])


def test_many_lines_are_not_all_named() -> None:
    assert named([7]) == "line 7"
    assert named([1, 2, 5]) == "lines 1, 2, 5"
    assert named(range(3, 20)) == "lines 3, 4, 5, 6, 7, … (17 in all)"


def test_help_says_what_the_length_penalty_is() -> None:
    done = mt("translate", "--help")
    assert done.code == 0
    assert "score = log-probability / length^A: larger favours longer ones." in " ".join(done.out.decode().split())
