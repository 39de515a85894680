"""Languages told from names: train.en.gz is English, corpus.pt_BR Portuguese, a file called notes.txt nobody knows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePath

from mt.config.schema import Corpus, DataConfig, HubDataset, JsonlFile, Langs, TextFiles
from mt.config.stage import Trail

# ISO 639-1, all of it; then the ISO 639-3 codes met most in parallel corpora. Left out are those that look like something else
# at the end of a file name (src, txt, tok, raw).
_TWO = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo
fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg
li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se
sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
_THREE = """
abk ace acm acq aeb afr ajp aka als amh apc arb arg arn ars ary arz asm ast awa ayr azb azj bak bam ban bel bem ben bho bis bjn bod bos bre
bug bul cat ceb ces che chm chr chv cjk ckb cmn cop cor crh csb cym dan deu dik dsb dyu dzo ell eng epo est eus ewe fao fas fij fil fin fon
fra frp fur fuv gaz gla gle glg grc grn gsw guj hat hau haw hbo heb hil hin hmn hne hrv hsb hun hye ibo iku ilo ind isl ita jav jpn kab kac
kal kam kan kas kat kaz kbp kea khk khm kik kin kir kmb kmr knc kon kor lad lao lat lfn lij lim lin lit lmo ltg ltz lua lug luo lus lvs mag
mai mal mar mhr min mkd mlt mni mnw mos mri mrj msa mya nap nav nds nep nld nno nob npi nso nus nya oci ory pag pan pap pcm pes plt pms pol
por prs pus quc quy quz roh rom ron run rus sag san sat scn sco shn sin slk slv sma sme smj smo sna snd som sot spa srd srp ssw sun swa swe
swh szl tah tam taq tat tel tet tgk tgl tha tir ton tpi tsn tso tuk tum tur twi tzm udm uig ukr umb urd uzb uzn vec ven vie war wol xho yid
yor yue zgh zho zsm zul
"""
CODES = frozenset((_TWO + _THREE).split())
"""Language codes that a name may end in."""
_COMPRESSED = frozenset((".gz", ".xz", ".bz2", ".zst"))
_REGIONAL = re.compile(r"([A-Za-z]{2,3})(?:[-_][A-Za-z]{4})?(?:[-_](?:[A-Za-z]{2}|[0-9]{3}))?")


def language(name: str) -> str | None:
    """The language code a name ends in, as written there (zh-CN stays zh-CN); None where that is no known code."""
    suffixes = [suffix for suffix in PurePath(name).suffixes if suffix.lower() not in _COMPRESSED]
    code = suffixes[-1][1:] if suffixes else ""
    known = _REGIONAL.fullmatch(code)
    return code if known and known[1].lower() in CODES else None


def closeness(code: str, wanted: str) -> int | None:
    """How well a language code fits the one that is wanted: 0 the same, 1 a variety of it, 2 it is a variety of this one; None not at all.

    Case and the kind of hyphen do not matter: EN and en-us fit en, en fits en-US, en-GB does not.
    """
    here, there = (one.lower().replace("_", "-") for one in (code, wanted))
    if here == there:
        return 0
    return 1 if here.startswith(f"{there}-") else 2 if there.startswith(f"{here}-") else None


def same_language(code: str, other: str) -> bool:
    """Whether two language codes stand for one language, be it of two countries."""
    return closeness(re.split("[-_]", code)[0], other) is not None


def differs(code: str, others: Collection[str]) -> bool:
    """Whether a language code is surely none of these; `de` and `deu` may be one, and nobody knows about `german`."""

    def comparable(other: str) -> bool:
        return len(re.split("[-_]", code)[0]) == len(re.split("[-_]", other)[0])

    return bool(others) and all(comparable(other) and not same_language(code, other) for other in others)


def quoted(codes: Iterable[str]) -> str:
    """Language codes in a message, where `it` and `no` would be read as words."""
    return ", ".join(map(repr, codes))


def named(corpus: Corpus) -> Langs | None:
    """The languages a corpus names: those it was given, else by file suffixes, or by the fields of its records."""
    if corpus.langs:
        return corpus.langs
    match corpus:
        case TextFiles(src=source, tgt=target):
            src, tgt = language(source.name), language(target.name)
        case JsonlFile(fields=fields) | HubDataset(fields=fields) if fields:
            src, tgt = language(f"x.{fields.src}"), language(f"x.{fields.tgt}")
        case _:
            return None
    return Langs(src=src, tgt=tgt) if src and tgt else None


def corpora(data: DataConfig) -> Iterator[tuple[Trail, Corpus]]:
    """Every corpus of a config with its place: training, dev, test."""
    for i, corpus in enumerate(data.train):
        yield ("data", "train", i), corpus
    for name, corpus in data.dev_sets().items():
        yield ("data", "dev", *([name] if isinstance(data.dev, dict) else [])), corpus
    for name, corpus in data.test.items():
        yield ("data", "test", name), corpus


def infer(data: DataConfig) -> Langs | None:
    """The languages of the first corpus that names them; None when none does."""
    return next((langs for _, corpus in corpora(data) if (langs := named(corpus))), None)
