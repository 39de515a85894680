#!/usr/bin/env python3
"""BLEU as papers on Multi30k count it: of lower-cased, punctuation-normalised, Moses-tokenised text, without a tokenizer of its own.

scripts/paper_bleu.py OUTPUT REFERENCE [--lang de]     both raw text, also compressed

The data set's own files are made so (`*.lc.norm.tok.de`, https://github.com/multi30k/dataset): lower case, normalize-punctuation.perl,
tokenizer.perl. Both sides go through the same steps here, by sacremoses. Such a score is not comparable with one of raw text.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from mt.files import read_lines


def prepared(lines: Iterable[str], *, lang: str) -> list[str]:
    """Lower-cased, punctuation-normalised, tokenised; markup characters escaped, as tokenizer.perl does."""
    normalizer, tokenizer = MosesPunctNormalizer(lang=lang), MosesTokenizer(lang=lang)
    return [tokenizer.tokenize(normalizer.normalize(line.strip().lower()), return_str=True) for line in lines]


def paper_bleu(output: Iterable[str], reference: Iterable[str], *, lang: str) -> tuple[float, str]:
    """The score, and sacreBLEU's signature of what was counted."""
    metric = BLEU(tokenize="none", force=True)
    score = metric.corpus_score(prepared(output, lang=lang), [prepared(reference, lang=lang)]).score
    return score, str(metric.get_signature())


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("reference")
    parser.add_argument("--lang", default="de")
    args = parser.parse_args()
    score, signature = paper_bleu(read_lines(args.output), read_lines(args.reference), lang=args.lang)
    print(f"lc.norm.tok BLEU {score:.2f}  {signature}")


if __name__ == "__main__":
    main()
