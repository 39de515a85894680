"""A proof tells lines that differ, BLEU, speed and first steps, and fails where too much differs; which program it is does not matter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mt.decode.engine import Beam
from mt.errors import RunError
from mt.export.proof import Sample, first_step, proven
from mt.translator import Translator
from tests import toy
from tests.translating import taught_run

LINES = toy.sentences(20, seed=9)


@dataclass
class Mirror:
    """Translates as the run does, but for some lines, whose first piece is also less probable."""

    native: Translator
    wrong: Sequence[int] = ()
    apart: float | None = 0.0
    called: str = "a mirror"
    tolerance: float = 10.0
    exact: bool = True
    widths: list[int] = field(default_factory=list)

    def translate(self, lines: Sequence[str], search: Beam, *, to: str | None) -> list[str]:
        self.widths.append(search.width)
        found = [one.text for one in self.native.translate(lines, settings=search, to=to)]
        return ["something else" if place in self.wrong else text for place, text in enumerate(found)]

    def first_step(self, lines: Sequence[str], *, to: str | None) -> NDArray[np.float32] | None:
        return None if self.apart is None else first_step(self.native, lines, to=to) - np.float32(self.apart)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return Translator.load(taught_run(tmp_path_factory.mktemp("taught"), "decode.beam=3").path, device="cpu")


def sample(*, references: bool = True) -> Sample:
    return Sample(LINES, [toy.translation(line) for line in LINES] if references else None, "some lines")


@pytest.mark.parametrize("exact", [True, False])
def test_a_model_that_translates_poorly_is_named_as_the_cause(native: Translator, exact: bool) -> None:
    with pytest.raises(RunError, match=r"^not exported: greedy: 9 of 20 lines differ") as refused:
        proven(native, Mirror(native, wrong=range(9), exact=exact), sample(), tolerance=None, say=lambda _: None)
    assert re.search(r"the run itself translates poorly so far \(BLEU [0-9.]+ here\).*: train it longer", str(refused.value))
    assert ("export it in float32" in str(refused.value)) is not exact


def test_what_no_rounding_does_is_not_blamed_on_the_model(native: Translator) -> None:
    with pytest.raises(RunError, match=r"^the export does not translate as the run does: greedy: 9 of 20") as refused:
        proven(native, Mirror(native, wrong=range(9), apart=0.5), sample(), tolerance=None, say=lambda _: None)
    assert "poorly" not in str(refused.value)


def test_what_is_the_same_is_proven(native: Translator) -> None:
    said: list[str] = []
    mirror = Mirror(native)
    proof = proven(native, mirror, sample(), tolerance=None, say=said.append)
    assert mirror.widths == [1, 1, 3, 3]  # each is warmed before it is timed
    assert [(one.search, one.equal) for one in proof.searches] == [("greedy", 20), ("beam 3", 20)]
    assert all(one.bleu is not None and one.bleu[0] == one.bleu[1] > 0 for one in proof.searches)
    assert proof.apart == 0
    assert said == list(proof.lines())
    assert said[0] == "proof: 20 lines of some lines, translated by the run and by a mirror"
    assert [line.split()[:3] for line in said[2:4]] == [["greedy", "20", "of"], ["beam", "3", "20"]]
    facts = proof.as_json()
    assert [one["equal"] for one in facts["searches"]] == [20, 20]


def test_lines_that_differ_are_shown_and_fail_beyond_the_tolerance(native: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.export.proof.POOR_BLEU", 0.0)  # so little will do
    said: list[str] = []
    proof = proven(native, Mirror(native, wrong=[3, 5]), sample(), tolerance=None, say=said.append)
    assert [one.equal for one in proof.searches] == [18, 18]
    assert all(one.bleu is not None and one.bleu[1] < one.bleu[0] for one in proof.searches)
    assert any(line.startswith("greedy, line 4: ") and line.endswith("became 'something else'") for line in said)
    otherwise = "^the export does not translate as the run does: "
    with pytest.raises(RunError, match=rf"{otherwise}greedy: 3 of 20 lines differ, more than 10 %; --tolerance N"):
        proven(native, Mirror(native, wrong=[3, 5, 7]), sample(), tolerance=None, say=said.append)
    proven(native, Mirror(native, wrong=[3, 5, 7]), sample(), tolerance=15, say=said.append)
    with pytest.raises(RunError, match=f"{otherwise}greedy: 1 of 20 lines differ, more than 0 %"):
        proven(native, Mirror(native, wrong=[3]), sample(), tolerance=0, say=said.append)


def test_first_steps_that_are_no_rounding_fail_in_float32_alone(native: Translator) -> None:
    said: list[str] = []
    with pytest.raises(RunError, match=r"the log-probabilities of the first piece are 0\.5 apart"):
        proven(native, Mirror(native, apart=0.5), sample(), tolerance=None, say=said.append)
    assert proven(native, Mirror(native, apart=0.5, exact=False), sample(), tolerance=None, say=said.append).apart == pytest.approx(0.5)
    with pytest.raises(RunError, match="are nan apart"):
        proven(native, Mirror(native, apart=float("nan")), sample(), tolerance=None, say=said.append)


def test_without_references_and_first_steps_the_rest_is_told(native: Translator) -> None:
    said: list[str] = []
    proof = proven(native, Mirror(native, apart=None), sample(references=False), tolerance=None, say=said.append)
    assert proof.apart is None
    assert [one.bleu for one in proof.searches] == [None, None]
    assert len(said) == 4
    assert not any("BLEU" in line or "first piece" in line for line in said)


def test_a_run_that_searches_greedily_is_compared_once(tmp_path: Path) -> None:
    greedy = Translator.load(taught_run(tmp_path, "decode.beam=1", updates=2).path, device="cpu")
    proof = proven(greedy, Mirror(greedy), sample(), tolerance=None, say=lambda _: None)
    assert [one.search for one in proof.searches] == ["greedy"]
