"""The doctor: all corpora of a config, one after the other, then what they have to do with each other."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mt.clean.identify import installed
from mt.clean.partition import shares_in
from mt.config.directions import langs_of, tag_of, target_of
from mt.config.schema import Config, Corpus, Langs
from mt.doctor.alike import Alike
from mt.doctor.examine import Examination, Memory
from mt.doctor.findings import CorpusFacts, Diagnosis, Finding, legible, number
from mt.doctor.judge import judged, leaked, other_way_round, tokenized, unidentified, without_tokenizer
from mt.doctor.leakage import HeldOut, Leaks
from mt.doctor.lengths import LengthLog
from mt.doctor.looks import MOST, looks
from mt.doctor.pieces import fates, quick, too_long
from mt.doctor.reading import Advance
from mt.doctor.turned import turned
from mt.errors import DataError, TokenizerError
from mt.files import NO_ROOM, open_binary, shards
from mt.formats.pairs import Pair
from mt.tokenizer.spm import Tokenizers

Role = Literal["train", "dev", "test"]
Say = Callable[[str], None]


def silent(_: object) -> None:
    """Hears, and does nothing."""


class NamedCorpus(NamedTuple):
    """A corpus of a config, with what it is for."""

    name: str
    """As reports call it: each has its own."""
    role: Role
    corpus: Corpus
    langs: Langs | None


def named_corpora(config: Config) -> list[NamedCorpus]:
    """All corpora: the training corpora by their names, then `dev`, and the test sets by theirs."""
    data = config.data
    roles: list[tuple[str, Role, Corpus]] = [(corpus.called(), "train", corpus) for corpus in data.train]
    roles += [(f"dev {name}" if isinstance(data.dev, dict) else "dev", "dev", corpus) for name, corpus in data.dev_sets().items()]
    roles += [(name, "test", corpus) for name, corpus in data.test.items()]
    found: dict[str, NamedCorpus] = {}
    for name, role, corpus in roles:
        name = legible(name)
        names = (name, *(f"{name} ({n})" for n in range(2, len(roles) + 1)))
        own = next(one for one in names if one not in found)
        found[own] = NamedCorpus(own, role, corpus, langs_of(config, corpus))
    return list(found.values())


def inputs(config: Config) -> list[Path]:
    """All files of all corpora. Raises DataError where there are none."""
    return [shard for named in named_corpora(config) for path in named.corpus.paths() for shard in shards(path)]


def size(config: Config) -> int:
    """Bytes of all files of a config, as they lie on the disk. Raises DataError if one cannot be opened, or read more than once."""
    for path in inputs(config):
        if path.exists() and not path.is_file():
            raise DataError(f"{path}: is a pipe or a device, which gives its text only once; save that to a file, and check the file")
        open_binary(path).close()
    return sum(path.stat().st_size for path in inputs(config))


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for what memory is not to hold. Raises DataError if there is no more room."""
    with tempfile.TemporaryDirectory(prefix="mt-check-") as name:
        try:
            yield Path(name)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            cure = "set TMPDIR to a folder with about 60 bytes for each pair"
            raise DataError(f"{Path(name).parent}: no room for what is to be remembered of the pairs; {cure}") from None


class Doctor:
    """Examines all corpora of a config. Memory is bounded, but for the held-out sets and the number of corpora."""

    def __init__(self, config: Config, *, tokenizers: Tokenizers | None = None, advance: Advance = silent, say: Say = silent) -> None:
        """`tokenizers` are those of a run; without them some are trained. `advance` hears of bytes read, `say` of what is being done."""
        self._config, self._tokenizers = config, tokenizers
        self._advance, self._say = advance, say
        self._alike = Alike.of(config)
        self._exams: dict[str, Examination] = {}
        self._facts: dict[str, CorpusFacts] = {}
        self._findings: list[Finding] = []

    def examine(self) -> Diagnosis:
        """Read everything once, and say what was found. Raises DataError where a file cannot be opened, or the disk is full."""
        corpora = named_corpora(self._config)
        train = [named for named in corpora if named.role == "train"]
        held_out = [named for named in corpora if named.role != "train"]
        with _scratch() as folder:
            sets = {named.name: self._held_out(named, folder) for named in held_out}
            index = HeldOut(sets)
            leaks = Leaks(index)
            with Memory(folder) as memory:
                for named in train:
                    self._train(named, leaks, memory, folder)
            leakage = self._leakage(index, leaks, sets)
            self._pieces(folder)
        self._directions(train, held_out)
        if not installed() and any(named.langs for named in corpora):
            self._findings.append(unidentified(self._facts[corpora[0].name]))
        self._findings.sort(key=lambda finding: (-finding.severity, [*self._facts].index(finding.corpus)))
        return Diagnosis([self._facts[named.name] for named in corpora], self._findings, leakage)

    def _held_out(self, named: NamedCorpus, folder: Path) -> list[Pair]:
        """Examine a dev or test set; its usable pairs."""
        pairs = []
        with Memory(folder) as memory, self._examination(named, memory, folder) as exam:
            for usable in exam.run():
                pairs += [usable.pair(row) for row in range(len(usable.src))]
        return pairs

    def _train(self, named: NamedCorpus, leaks: Leaks, memory: Memory, folder: Path) -> None:
        """Examine a training corpus, and compare with the held-out sets what is trained on."""
        leaking = 0
        with self._examination(named, memory, folder) as exam:
            for usable in exam.run():
                if self._alike:
                    usable = usable.without(self._alike(usable.src, usable.tgt) | self._held_out_of(named.corpus, usable.src))
                leaking += len(leaks.look(usable.src, usable.tgt, usable.pair))
        self._facts[named.name].counts["leakage"] = leaking

    def _held_out_of(self, corpus: Corpus, src: list[str]) -> set[int]:
        """The sources of a training corpus that were held out of it."""
        shares = None if corpus.synthetic else shares_in(self._config.data)
        return {row for row, text in enumerate(src) if shares and shares.part(text)}

    @contextmanager
    def _examination(self, named: NamedCorpus, memory: Memory, folder: Path) -> Iterator[Examination]:
        """The examination of one corpus, to be run within; then it is judged, and what is not needed any more is let go."""
        self._say(f"reading {named.name}")
        with LengthLog(folder) as lengths:
            exam = Examination(
                named.corpus, named.langs, tag=tag_of(self._config, named.corpus), memory=memory, lengths=lengths, advance=self._advance
            )
            yield exam
            self._say(f"looking at the text of {named.name}")
            files = [legible(str(path)) for path in named.corpus.paths()] or [named.corpus.called()]
            facts = CorpusFacts(named.name, named.role, files, exam.pairs + exam.rejected, exam.sample.seen, len(exam.sample))
            facts.characters = lengths.medians()
            filters = self._config.data.filters if named.role == "train" else None
            self._findings += judged(facts, exam, list(looks(exam.sample, named.langs)), filters)
        self._exams[named.name], self._facts[named.name] = exam, facts
        while sum(len(one.sample) for one in self._exams.values()) > MOST:
            max(self._exams.values(), key=lambda one: len(one.sample)).sample.thin()

    def _leakage(self, index: HeldOut, leaks: Leaks, sets: dict[str, list[Pair]]) -> dict[str, dict[str, Any]]:
        """What of the held-out sets is in the training data, and what in other held-out sets."""
        between = Leaks(index)
        goes_to = {named.name: target_of(self._config, named.corpus) for named in named_corpora(self._config)}
        for name, pairs in sets.items():
            src, tgt = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
            elsewhere = [index.sets[other] for other in sets if goes_to[other] != goes_to[name]]
            between.look(src, tgt, pairs.__getitem__, own=index.sets[name], elsewhere=elsewhere)
        leakage = {}
        for name in sets:
            met = leaked(self._facts[name], index, leaks, kind="leakage", where="the training data")
            also = leaked(self._facts[name], index, between, kind="overlap", where="other held-out sets")
            self._findings += [finding for finding in (met.finding, also.finding) if finding]
            leakage[name] = met.numbers | {"in_other_sets": also.numbers}
        return leakage

    def _directions(self, train: list[NamedCorpus], held_out: list[NamedCorpus]) -> None:
        """Which training corpora are turned round against a held-out set of the same languages."""
        for named in train:
            alike = (other.name for other in held_out if other.langs == named.langs)
            sample = self._exams[named.name].sample
            if against := next((name for name in alike if turned(sample, self._exams[name].sample)), None):
                self._findings.append(other_way_round(self._facts[named.name], against))

    def _pieces(self, folder: Path) -> None:
        """What a tokenizer makes of all corpora."""
        config = self._config
        tokenizers, about = self._tokenizers, "the tokenizer of the run"
        if tokenizers is None:
            self._say("training a tokenizer on a sample")
            train = [exam for name, exam in self._exams.items() if self._facts[name].role == "train"]
            alphabets = [set[str]().union(*(exam.alphabets[side] for exam in train)) for side in (0, 1)]
            try:
                tokenizers = quick([exam.sample for exam in train], alphabets, config.tokenizer, seed=config.train.seed, folder=folder)
            except TokenizerError as error:
                self._findings.append(without_tokenizer(next(iter(self._facts.values())), str(error)))
                return
            about = f"a tokenizer of {number(tokenizers.src.size, 'piece')}"
        for name, exam in self._exams.items():
            self._say(f"counting the pieces of {name}")
            found = [fates(alphabet, tokenizer) for alphabet, tokenizer in zip(exam.alphabets, tokenizers, strict=True)]
            long = too_long(exam.sample, tokenizers, max_pieces=config.data.max_pieces)
            sampled = len(exam.sample)
            self._findings += tokenized(self._facts[name], found, long, sampled=sampled, about=about, max_pieces=config.data.max_pieces)
