"""What a translation must not lose: `%d`, `%(name)s`, `%1`, `{0}`, `{name}`, and markup such as `<b>` in the text itself."""

from __future__ import annotations

import re
from collections import Counter

# No space after the percent sign, and no digit before it, though C allows both: "100% sure" and "a 100%ige Sache" hold none.
PLACEHOLDER = re.compile(
    r"""%% | (?<!\d)%(?:\d+\$)?(?:\([^()\s]+\))?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[qjztL])?[a-zA-Z@]
    | (?<!\d)%L?\d+
    | \{[ ]?[^{}\s]*[ ]?\}
    | </?[a-zA-Z][^<>]*>""",
    re.VERBOSE,
)


def lost(source: str, target: str) -> list[str]:
    """The placeholders of a source that its translation lacks, or has fewer times."""
    missing = Counter(PLACEHOLDER.findall(source)) - Counter(PLACEHOLDER.findall(target))
    return list(missing.elements())
