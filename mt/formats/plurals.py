"""How many plural forms a catalogue has, and which of them is the singular: from its header, or else from its language."""

from __future__ import annotations

import gettext
import re
from typing import NamedTuple

_SLAVIC = "n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
_RULES = {
    (1, "0"): "bo dz id ja jv km ko lo ms my su th vi wo yo zh",
    (2, "n != 1"): "af an ast az bg bn ca da de el en eo es et eu fi fo fur fy gl gu ha he hu ia it kn ku lb ml mn mr nap nb ne nl nn no "
    "pa pap pms ps pt rm se so sq sv sw ta te tk ur",
    (2, "n > 1"): "ach ak am arn br fa fil fr gun hi ln mg mi oc pt-br tg ti tl tr uz wa",
    (2, "n%10!=1 || n%100==11"): "is",
    (2, "n==1 || n%10==1 ? 0 : 1"): "mk",
    (3, "n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2"): "lv",
    (3, "n==1 ? 0 : n==0 || (n%100 > 0 && n%100 < 20) ? 1 : 2"): "ro",
    (3, "n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2"): "lt",
    (3, _SLAVIC): "be bs hr ru sr uk",
    (3, "n==1 ? 0 : n>=2 && n<=4 ? 1 : 2"): "cs sk",
    (3, "n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"): "pl",
    (4, "n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3"): "sl",
    (4, "n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : n%100>10 && n%100<20 ? 2 : 3"): "mt",
    (4, "n==1 || n==11 ? 0 : n==2 || n==12 ? 1 : n > 2 && n < 20 ? 2 : 3"): "gd",
    (5, "n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4"): "ga",
    (6, "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5"): "ar",
}
_BY_LANGUAGE = {code: rule for rule, codes in _RULES.items() for code in codes.split()}


class Plurals(NamedTuple):
    """The forms of one catalogue."""

    number: int
    """How many."""
    singular: int | None
    """The form for one thing; None where one form stands for all numbers."""
    header: str
    """As in the header's Plural-Forms."""

    def source(self, form: int, msgid: str, msgid_plural: str) -> str:
        """What a form translates: the plural text, unless it is the form for one thing."""
        return msgid if form == self.singular else msgid_plural


def from_header(value: str) -> Plurals | None:
    """The plural forms a header tells of; None if it tells nothing, as in a template."""
    found = re.search(r"nplurals\s*=\s*([1-9])\s*;\s*plural\s*=\s*([^;]+)", value)
    if not found:
        return None
    try:
        singular = gettext.c2py(found[2])(1)
    except (ValueError, RecursionError, ZeroDivisionError):
        return None
    count = int(found[1])
    return Plurals(count, singular if count > 1 else None, value)


def of_language(code: str) -> Plurals | None:
    """The plural forms of a language, as GNU gettext has them; None if unknown."""
    code = code.lower().replace("_", "-")
    rule = _BY_LANGUAGE.get(code) or _BY_LANGUAGE.get(code.partition("-")[0])
    return from_header(f"nplurals={rule[0]}; plural=({rule[1]});") if rule else None
