"""What a user can cause and cure. The command line prints the message and exits with code 2.

    MTError
     ├─ ConfigError      a setting: names file, line, key and cure, one line per problem
     ├─ DataError        a corpus or an input: names file and line, like a compiler
     │   └─ EmptyError   there are no pairs in a corpus
     ├─ TokenizerError   a tokenizer that cannot be trained or loaded
     ├─ RunError         a run directory or checkpoint: missing, locked, changed, of another version
     ├─ TrainError       training that cannot go on
     └─ DecodeError      a search asked for what it cannot give
         └─ TooLargeError   more than fits into memory

Any other exception is a fault of this program and keeps its traceback.
"""


class MTError(Exception):
    """The user can cause it and cure it: one line (or one per problem), no traceback."""


class ConfigError(MTError):
    """One or more settings are wrong; each problem is one line."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class DataError(MTError):
    """A corpus or an input file is wrong; the message names file and line."""


class EmptyError(DataError):
    """There are no pairs in a corpus."""


class TokenizerError(MTError):
    """A tokenizer cannot be trained or loaded."""


class RunError(MTError):
    """A run directory or checkpoint is missing, locked, changed or of another version."""


class TrainError(MTError):
    """Training cannot go on."""


class DecodeError(MTError):
    """A search was asked for what it cannot give."""


class TooLargeError(DecodeError):
    """A search asked for more than fits into memory."""
