"""What a comparison says, in words and tables: `outline` gives the blocks of a report, short for a terminal or whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mt.evaluate.compare import Bucket, Comparison, Example, Rival, System
from mt.evaluate.layout import Block, Graph, Heading, Numbers, Paragraph, Quotation, Table
from mt.evaluate.significance import Difference
from mt.formats.pairs import counted
from mt.page.blocks import Tile
from mt.page.charts import Bars

NO_DIFFERENCE = "no significant difference at 95 %"
UNDECIDED = "undecided: the two tests disagree"
LOWER_IS_BETTER = frozenset({"ter"})


def outline(comparison: Comparison, *, examples: int) -> Iterator[Block]:
    """The whole comparison, with so many examples either way for each system."""
    baseline = comparison.systems[0]
    yield Numbers(tuple(_tile(key, rival, comparison) for rival in comparison.rivals for key in list(comparison.metrics)[:1]))
    yield Table(("", *comparison.metrics.values()), tuple(_scores(system, comparison) for system in comparison.systems))
    for rival in comparison.rivals:
        yield Heading(f"{rival.name} against {baseline.name}")
        yield Table(
            ("", "difference", "95 % interval", "p, bootstrap", "p, randomised", ""),
            tuple(_difference(name, key, rival.differences[key]) for key, name in comparison.metrics.items()),
            remarks=1,
        )
        yield Paragraph(tuple(_by_sentence(rival)))
    if baseline.ngrams:
        yield Heading("What BLEU is made of")
        head = ("", "1-grams", "2-grams", "3-grams", "4-grams", "brevity", "length / reference")
        yield Table(head, tuple(_ngrams(system) for system in comparison.systems))
    for title, buckets in comparison.buckets.items():
        yield Heading(f"chrF2 by {title}")
        bucket_head = ("", "lines", baseline.name, *(f"{rival.name}: difference" for rival in comparison.rivals))
        yield Graph(
            "difference of chrF2",
            tuple(bucket.label for bucket in buckets),
            tuple(_bars(rival.name, buckets, baseline.name) for rival in comparison.rivals),
        )
        yield Table(bucket_head, tuple(_bucket(bucket, comparison) for bucket in buckets))
    for rival in comparison.rivals:
        for title, found in (("better", rival.better), ("worse", rival.worse)):
            if found[:examples]:
                yield Heading(f"{rival.name} {title} than {baseline.name}: the lines that differ most")
                yield from (_quotation(one, baseline.name, rival.name) for one in found[:examples])
    yield Heading("How this was judged")
    yield Paragraph(tuple(method(comparison)))
    signatures = [(name, comparison.signatures[key]["bootstrap"]) for key, name in comparison.metrics.items()]
    yield Table(("signatures", ""), tuple(signatures), remarks=1)


def about(comparison: Comparison) -> str:
    """What is compared."""
    lines, references = counted(comparison.lines, "line"), counted(comparison.references, "reference")
    return f"{lines}, {references}; {len(comparison.systems)} systems, of which {comparison.systems[0].name} is the baseline"


def method(comparison: Comparison) -> Iterator[str]:
    """What the reader has to know of the numbers."""
    drawn = comparison.resampling
    tests = f"paired bootstrap of {drawn.samples} samples, approximate randomisation of {drawn.trials} trials, seed {drawn.seed}"
    yield f"Intervals and p: {tests}."
    yield "Better and worse: p is below 0.05 by both tests."
    if (count := len(comparison.rivals)) > 1:
        yield f"For that, p is corrected for {count} comparisons (Holm); the p shown is not."
    yield "That holds for other lines such as these, not for other trainings of the systems."
    yield "Buckets have intervals, not tests: where there are many, some leave out 0 by chance."


def verdict(key: str, difference: Difference) -> str:
    """What both tests say of one metric."""
    if difference.significant is None:
        return UNDECIDED
    if not difference.significant:
        return NO_DIFFERENCE
    return "better" if (difference.difference > 0) != (key in LOWER_IS_BETTER) else "worse"


def _tile(key: str, rival: Rival, comparison: Comparison) -> Tile:
    """The first metric's verdict."""
    found = verdict(key, rival.differences[key])
    kind = {"better": "note", "worse": "error"}.get(found, "warning")
    baseline = comparison.systems[0].name
    below = f"than {baseline}" if found in ("better", "worse") else f"against {baseline}"
    return Tile(f"{rival.differences[key].difference:+.2f}", f"{comparison.metrics[key]}: {rival.name}", f"{found} ({below})", kind)


def _bars(name: str, buckets: Sequence[Bucket], baseline: str) -> Bars:
    """The differences of one rival; where there is no interval, the bar stands alone."""
    heights = [bucket.scores[name] - bucket.scores[baseline] for bucket in buckets]
    return Bars(name, heights, [bucket.intervals[name] or (height, height) for bucket, height in zip(buckets, heights, strict=True)])


def _scores(system: System, comparison: Comparison) -> tuple[str, ...]:
    cells = (system.scores[key] for key in comparison.metrics)
    return system.name, *(f"{one.score:.2f} {_span(one.interval)}" for one in cells)


def _difference(name: str, key: str, one: Difference) -> tuple[str, ...]:
    p_values = f"{one.p_bootstrap:.4f}", f"{one.p_randomisation:.4f}"
    return name, f"{one.difference:+.2f}", _span(one.interval, signed=True), *p_values, verdict(key, one)


def _by_sentence(rival: Rival) -> Iterator[str]:
    ties = f"{rival.ties} equal ({rival.same} the same text)"
    yield f"By sentence, chrF2: {rival.wins} lines better, {rival.losses} worse, {ties}."
    if rival.by_precision is not None and rival.by_brevity is not None:
        yield f"Of the difference of BLEU, precision makes up {rival.by_precision:+.2f}, brevity {rival.by_brevity:+.2f}."


def _ngrams(system: System) -> tuple[str, ...]:
    one = system.ngrams
    assert one
    precisions = (f"{precision:.1f}" for precision in one.precisions)
    return system.name, *precisions, f"{one.brevity:.3f}", f"{one.length} / {one.reference_length}"


def _bucket(bucket: Bucket, comparison: Comparison) -> tuple[str, ...]:
    own = bucket.scores[comparison.systems[0].name]
    rivals = []
    for rival in comparison.rivals:
        interval = bucket.intervals[rival.name]
        span = f" {_span(interval, signed=True)}" if interval else " (few lines)"
        rivals.append(f"{bucket.scores[rival.name] - own:+.2f}{span}")
    return bucket.label, str(bucket.lines), f"{own:.2f}", *rivals


def _quotation(one: Example, baseline: str, other: str) -> Quotation:
    source = [("source", one.source)] if one.source is not None else []
    references = [("reference", text) for text in one.references]
    here, there = one.chrf
    return Quotation(
        f"line {one.line}, chrF2 {here:.0f} → {there:.0f}", (*source, *references, (baseline, one.baseline), (other, one.other))
    )


def _span(interval: tuple[float, float], *, signed: bool = False) -> str:
    low, high = interval
    return f"[{low:+.2f}, {high:+.2f}]" if signed else f"[{low:.2f}, {high:.2f}]"
