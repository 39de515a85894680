"""The quickstart corpus: dev and test hold combinations that train never shows, made of words that it shows often."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data" / "quickstart"
HELD_OUT = ("dev", "test")
SIDES = ("en", "de")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The generator script as a module."""
    spec = importlib.util.spec_from_file_location("make_quickstart", ROOT / "scripts" / "make_quickstart.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sets(generator: ModuleType) -> dict[str, list]:
    """What the generator makes: examples by set."""
    return generator.build()


def lines(name: str, side: str) -> list[str]:
    """The lines of a committed file."""
    text = (DATA / f"{name}.{side}").read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text.removesuffix("\n").split("\n")


def loose(line: str) -> str:
    """The line without regard to case, spaces and punctuation."""
    return " ".join("".join(c if c.isalnum() else " " for c in line.lower()).split())


def words(text: list[str]) -> Counter[str]:
    """The words of some lines, as they are written, without the punctuation around them."""
    return Counter(word.strip(".,?") for line in text for word in line.split())


def test_committed_files_are_what_the_generator_writes() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "make_quickstart.py"), "--check"]
    done = subprocess.run(command, env={"PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_check_notices_a_changed_and_a_missing_file(
    generator: ModuleType,
    sets: dict[str, list],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generator, "build", lambda: sets)
    assert generator.main(["--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{side}" for name in ("train", *HELD_OUT) for side in SIDES}
    assert all(path.read_bytes() == (DATA / path.name).read_bytes() for path in tmp_path.iterdir())
    assert generator.main(["--out", str(tmp_path), "--check"]) == 0
    changed = (tmp_path / "dev.de").read_bytes() + b"Noch ein Satz.\n"
    (tmp_path / "dev.de").write_bytes(changed)
    (tmp_path / "test.en").unlink()
    assert generator.main(["--out", str(tmp_path), "--check"]) == 1
    complaints = capsys.readouterr().err.splitlines()
    assert [Path(line.partition(": ")[0]).name for line in complaints] == ["dev.de", "test.en"]
    assert (tmp_path / "dev.de").read_bytes() == changed, "--check writes nothing"


def test_held_out_combinations_never_occur_in_train(generator: ModuleType, sets: dict[str, list]) -> None:
    combinations = {name: {(example.pattern, example.pair) for example in examples} for name, examples in sets.items()}
    for name in HELD_OUT:
        assert not combinations[name] & combinations["train"]
    assert not combinations["dev"] & combinations["test"]
    train_patterns = {pattern for pattern, _ in combinations["train"]}
    assert train_patterns == {pattern.en for pattern in generator.PATTERNS}, "what is new is the combination, never the pattern"


def test_a_combination_alone_decides_the_set(generator: ModuleType, sets: dict[str, list]) -> None:
    for name, examples in sets.items():
        assert all(generator.set_of(example.pattern, example.pair) == name for example in examples)


@pytest.mark.parametrize("side", SIDES)
def test_no_line_occurs_twice_on_its_side(side: str) -> None:
    everything = Counter(loose(line) for name in ("train", *HELD_OUT) for line in lines(name, side))
    assert [line for line, count in everything.items() if count > 1] == []


def test_each_english_sentence_has_one_german_one_and_back() -> None:
    pairs = {(en, de) for name in ("train", *HELD_OUT) for en, de in zip(lines(name, "en"), lines(name, "de"), strict=True)}
    assert len({en for en, _ in pairs}) == len({de for _, de in pairs}) == len(pairs)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", HELD_OUT)
def test_every_held_out_word_occurs_in_train_several_times(name: str, side: str) -> None:
    seen = words(lines("train", side))
    assert {word: seen[word] for word in words(lines(name, side)) if seen[word] < 4} == {}


def test_sizes() -> None:
    assert 6000 <= len(lines("train", "en")) <= 9000
    assert [len(lines(name, "en")) for name in HELD_OUT] == [200, 200]
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 1_500_000
    assert all(3 <= len(line.split()) <= 16 for name in ("train", *HELD_OUT) for side in SIDES for line in lines(name, side))


@pytest.mark.parametrize("side", SIDES)
def test_text_is_clean(side: str) -> None:
    for name in ("train", *HELD_OUT):
        for line in lines(name, side):
            assert line == " ".join(line.split()), "single spaces, no tab, no carriage return"
            assert line[-1] in ".?", line
            assert line[0] == line[0].upper(), line
            assert not any(f" {mark}" in line for mark in ".,?"), line
            assert "{" not in line


@pytest.mark.parametrize(
    ("number", "en", "de"),
    [(1, "one", "eins"), (16, "sixteen", "sechzehn"), (21, "twenty-one", "einundzwanzig"), (30, "thirty", "dreißig")],
)
def test_numbers(generator: ModuleType, number: int, en: str, de: str) -> None:
    assert generator.number(number) == generator.Word(en, de)


def test_half_hours_count_towards_the_next_hour(generator: ModuleType) -> None:
    german = {time.en: time.de for time in generator.times(range(1, 13))}
    assert german["half past three"] == "halb vier"
    assert german["half past twelve"] == "halb eins"
    assert german["one o'clock"] == "ein Uhr"
    assert german["quarter to one"] == "Viertel vor eins"


@pytest.mark.parametrize(
    ("article", "case", "gender", "expected"),
    [
        ("der", "nom", "m", "der rote Nachbar"),
        ("der", "akk", "m", "den roten Nachbarn"),
        ("ein", "nom", "m", "ein roter Nachbar"),
        ("ein", "nom", "n", "ein rotes Nachbar"),
        ("kein", "akk", "f", "keine rote Nachbar"),
        ("mein", "dat", "f", "meiner roten Nachbar"),
        ("mein", "dat", "p", "meinen roten Nachbarn"),
    ],
)
def test_articles_adjectives_and_nouns_agree(generator: ModuleType, article: str, case: str, gender: str, expected: str) -> None:
    noun = generator.Noun("neighbour", "Nachbar", gender, de_plural="Nachbarn", weak=gender == "m")
    assert generator.phrase(article, case, generator.Word("red", "rot"), noun) == expected


@pytest.mark.parametrize(
    ("form", "expected"),
    [("fin", "ruft"), ("rest", "den Arzt an"), ("inf", "den Arzt anrufen"), ("zu", "den Arzt anzurufen"), ("last", "den Arzt anruft")],
)
def test_a_separable_verb_parts_only_in_main_clauses(generator: ModuleType, form: str, expected: str) -> None:
    verb = generator.Verb("call calls called", "rufe ruft rufen", "angerufen", "the doctor", "den Arzt", "an")
    arguments = [verb, generator.Subject("Anna", "Anna", 1)] if form in ("fin", "last") else [verb]
    assert generator.GERMAN[form](*arguments) == expected
