from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import io
import lzma
import os
import random
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mt.errors import DataError
from mt.files import decode_lines, meant, open_binary, read_lines, sha256, write_atomic
from mt.unpack import CHUNK_BYTES

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}
ODD = "\u2028\u2029\x85\v\f\x1c\x1d\x1e\0\t\r\ufeff e\N{GRINNING FACE}"
LINES = st.lists(st.text(st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=20), max_size=8)


class Trickle(io.RawIOBase):
    """A stream that gives a few bytes at a time, as a terminal does."""

    def __init__(self, data: bytes, size: int) -> None:
        self.source, self.size = io.BytesIO(data), size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        data = self.source.read(min(self.size, len(buffer)))
        buffer[: len(data)] = data
        return len(data)


def as_read(lines: list[str]) -> list[str]:
    """What the contract says of lines written with "\\n": one "\\r" less at the end of each, no byte order mark before the first."""
    return [line.removesuffix("\r") for line in ["".join(lines[:1]).removeprefix("\ufeff"), *lines[1:]]] if lines else []


def only_error(path: Path, **options: int) -> str:
    with pytest.raises(DataError) as caught:
        list(read_lines(path, **options))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


@given(lines=LINES, packer=st.sampled_from(list(PACKERS)))
def test_lines_come_back_from_every_packing(tmp_path_factory: pytest.TempPathFactory, lines: list[str], packer: str) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes(PACKERS[packer]("".join(f"{line}\n" for line in lines).encode()))
    assert list(read_lines(path)) == as_read(lines)


@given(lines=LINES, size=st.integers(1, 9))
def test_arrival_in_small_parts_changes_nothing(lines: list[str], size: int) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    assert list(decode_lines(io.BufferedReader(Trickle(data, size)), "<stdin>")) == as_read(lines)


@given(lines=LINES, packer=st.sampled_from(list(PACKERS)))
def test_final_newline_may_be_missing(tmp_path_factory: pytest.TempPathFactory, lines: list[str], packer: str) -> None:
    lines = [*lines, "last"]
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes(PACKERS[packer]("\n".join(lines).encode()))
    assert list(read_lines(path)) == as_read(lines)


def test_lines_across_chunks(tmp_path: Path) -> None:
    draw = random.Random(1)
    lines = ["ä€\N{GRINNING FACE}"[draw.randrange(3)] * draw.choice([0, 1, 50, CHUNK_BYTES // 3]) for _ in range(200)]
    (tmp_path / "x").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    assert list(read_lines(tmp_path / "x")) == lines


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_empty_file_has_no_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    assert list(read_lines(tmp_path / "x")) == []


def test_a_line_is_given_before_the_next_one_arrives() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as sender:
        sender.write(b"first\nsec")
        lines = decode_lines(stream, "<stdin>")
        assert next(lines) == "first"
        sender.write(b"ond\n")
        assert next(lines) == "second"


def test_packed_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    sender = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[gzip.compress(b"a\nb\n")])
    sender.start()
    assert list(read_lines(tmp_path / "pipe")) == ["a", "b"]
    sender.join()


def test_several_members_are_one_file(tmp_path: Path) -> None:
    for name, pack in PACKERS.items():
        (tmp_path / name).write_bytes(pack(b"a\nb") + pack(b"c\n"))
        assert list(read_lines(tmp_path / name)) == ["a", "bc"]


def test_packing_is_seen_in_the_content_not_the_name(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(b"plain\n")
    (tmp_path / "x.txt").write_bytes(lzma.compress(b"packed\n"))
    (tmp_path / "y.txt").write_bytes(b"BZh is how bzip2 begins\n")
    assert [*read_lines(tmp_path / "x.gz"), *read_lines(tmp_path / "x.txt")] == ["plain", "packed"]
    assert list(read_lines(tmp_path / "y.txt")) == ["BZh is how bzip2 begins"]


@pytest.mark.parametrize("packer", ["gzip", "bzip2", "xz", "zstd"])
def test_truncated_or_damaged_file_is_named(tmp_path: Path, packer: str) -> None:
    whole = PACKERS[packer](random.Random(1).randbytes(5000).hex().encode())
    (tmp_path / "short").write_bytes(whole[: len(whole) // 2])
    assert "ends too early" in only_error(tmp_path / "short")
    middle = len(whole) // 2
    (tmp_path / "damaged").write_bytes(whole[:middle] + bytes(byte ^ 0xFF for byte in whole[middle : middle + 50]) + whole[middle + 50 :])
    assert "is broken" in only_error(tmp_path / "damaged")


@pytest.mark.parametrize("cut", [1, 3, 9])
@pytest.mark.parametrize("packer", ["gzip", "bzip2", "xz", "zstd"])
def test_a_file_without_its_last_bytes_is_cut_short(tmp_path: Path, packer: str, cut: int) -> None:
    (tmp_path / "short").write_bytes(PACKERS[packer](b"good\n" * 1000)[:-cut])
    assert "ends too early" in only_error(tmp_path / "short")


def test_zstd_with_a_skippable_frame_first_and_without_content_size(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
    stream = zstandard.ZstdCompressor().compressobj()
    (tmp_path / "x").write_bytes(skippable + stream.compress(b"a\nb\n") + stream.flush() + skippable)
    assert list(read_lines(tmp_path / "x")) == ["a", "b"]


def test_zip_is_refused_with_its_cure(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as file:
        file.writestr("a.txt", "a\n")
    assert only_error(tmp_path / "x") == ": is packed with zip, which is not read; unpack it, or pack it with gzip, bzip2, xz or zstd"


@pytest.mark.parametrize("packer", list(PACKERS))
def test_bomb_is_an_error_and_memory_stays_small(tmp_path: Path, packer: str) -> None:
    (tmp_path / "bomb").write_bytes(PACKERS[packer](b"good\n" + bytes(50_000_000)))
    tracemalloc.start()
    assert only_error(tmp_path / "bomb", max_bytes=1_000_000).startswith(":2: the line is longer than 1000000 bytes")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000  # xz has a window of 8 MiB
    tracemalloc.stop()


@given(limit=st.integers(1, 30), extra=st.integers(-3, 3), before=st.integers(0, 4), newline=st.sampled_from([b"", b"\n"]))
def test_the_limit_is_exact_wherever_the_line_stands(limit: int, extra: int, before: int, newline: bytes) -> None:
    length = max(limit + extra, 1)
    stream = io.BytesIO(b"x\n" * before + b"y" * length + newline)
    lines = decode_lines(stream, "f", max_bytes=limit)
    if length <= limit:
        assert list(lines) == ["x"] * before + ["y" * length]
    else:
        with pytest.raises(DataError, match=f"^f:{before + 1}: "):
            list(lines)


@given(good=LINES, prefix=st.text("aé€", max_size=6), bad=st.sampled_from([b"\xe9", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x80"]))
def test_invalid_utf8_names_line_and_byte_after_the_good_lines(good: list[str], prefix: str, bad: bytes) -> None:
    line = prefix.encode() + bad + b" tail"
    lines = decode_lines(io.BytesIO("".join(f"{text}\n" for text in good).encode() + line + b"\nmore\n"), "f")
    seen: list[str] = []
    place = f"f:{len(good) + 1}: byte 0x{bad[0]:02X} is not UTF-8 (at byte {len(prefix.encode()) + 1} of the line)"
    with pytest.raises(DataError) as caught:
        seen.extend(lines)
    assert str(caught.value) == f"{place}; save the file as UTF-8"
    assert seen == as_read(good)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_recognised(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x").write_bytes("\ufeffruso\nhulo\n".encode(encoding))
    assert "looks like UTF-16" in only_error(tmp_path / "x")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert only_error(tmp_path / "q") == ": no such file"
    assert only_error(tmp_path / "no" / "x") == f": there is no folder {tmp_path / 'no'}"
    assert "is a folder" in only_error(tmp_path)


@pytest.mark.parametrize(
    ("within", "asked", "found"),
    [
        (".", "configs/quick.yml", "configs/quick.yaml"),
        (".", "quick.yaml", "configs/quick.yaml"),
        (".", "config/quick.yaml", "configs/quick.yaml"),
        ("configs", "configs/quick.yaml", "quick.yaml"),
        ("runs/one", "configs/quick.yaml", "../../configs/quick.yaml"),
        ("runs", "readme", "../readme"),
        (".", "configs/readme", "readme"),
        ("runs", "[a]*", None),
        (".", "one", None),
        (".", "..", None),
    ],
)
def test_a_missing_file_may_be_one_near_by(
    within: str, asked: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "configs").mkdir()
    for name in ("configs/quick.yaml", "readme"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path / within)
    assert meant(Path(asked)) == (Path(found) if found else None)
    if found:
        with pytest.raises(DataError, match=rf"^{asked}: .*; did you mean {found}\?$"):
            open_binary(asked)


def test_of_a_huge_folder_not_all_names_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.en").touch()
    assert meant(tmp_path / "train.e") == tmp_path / "train.en"
    monkeypatch.setattr("mt.files.MOST_NAMES", 0)
    assert meant(tmp_path / "train.e") is None


def test_what_cannot_be_written_names_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "dear").touch()
    with pytest.raises(DataError, match=f"^{tmp_path}/no/dear: there is no folder {tmp_path}/no$"), write_atomic(tmp_path / "no" / "dear"):
        pass


def test_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # chmod does not stop root
    assert only_error(tmp_path / "x") == ": permission denied"


def test_hash_is_of_the_bytes_on_disk(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"a"))
    assert sha256(tmp_path / "x") == hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest()
    with pytest.raises(DataError, match="no such file"):
        sha256(tmp_path / "y")


@given(lines=LINES)
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "written.txt"
    with write_atomic(path) as file:
        file.writelines(f"{line}\n" for line in lines)
    assert list(read_lines(path)) == as_read(lines)
    with open_binary(path) as stream:
        assert stream.read().count(b"\n") == len(lines)


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("before", [None, b"old"])
def test_failed_write_leaves_the_old_state(tmp_path: Path, failure: type[BaseException], before: bytes | None) -> None:
    path = tmp_path / "x"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(failure), write_atomic(path, "wb") as file:  # noqa: PT012 (the failure is inside the writing)
        file.write(b"new")
        file.flush()
        raise failure
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == ({} if before is None else {"x": before})


def test_the_file_is_old_until_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old", encoding="utf-8")
    with write_atomic(tmp_path / "x") as file:
        file.write("new")
        file.flush()
        assert (tmp_path / "x").read_text(encoding="utf-8") == "old"
    assert [(file.name, file.read_text(encoding="utf-8")) for file in tmp_path.iterdir()] == [("x", "new")]


def test_disk_has_the_bytes_before_the_name_and_the_name_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (done.append(name), real(*args)))
    with write_atomic(tmp_path / "x"):
        pass
    assert done == ["fsync", "replace", "fsync"]


def test_full_disk_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no space left on device"), write_atomic(tmp_path / "x"):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_link_keeps_pointing_at_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "x")
    with write_atomic(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "x").read_text(encoding="utf-8") == "new"


def test_device_is_written_not_replaced() -> None:
    with write_atomic("/dev/null") as file:
        file.write("gone")
    assert Path("/dev/null").is_char_device()


def test_target_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"), write_atomic(tmp_path):
        pass
    with pytest.raises(DataError, match="there is no folder"), write_atomic(tmp_path / "no" / "x"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_written_to_by_any_name() -> None:
    code = "from mt.files import write_atomic\nwith write_atomic('/dev/stdout') as file: file.write('ruso')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ruso", "")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_whatever_keeps_a_file_from_being_written_is_one_line(tmp_path: Path, number: int) -> None:
    with pytest.raises(DataError, match=f"^{tmp_path}/x: {os.strerror(number).lower()}$"), write_atomic(tmp_path / "x"):
        raise OSError(number, os.strerror(number))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["ruso\nhulo\n", "a\nb\nc\n", "Änderung\n"])
def test_utf16_without_byte_order_mark_is_recognised(tmp_path: Path, encoding: str, text: str) -> None:
    (tmp_path / "x").write_bytes(text.encode(encoding))
    assert "looks like UTF-16" in only_error(tmp_path / "x")


def test_some_nuls_are_no_utf16(tmp_path: Path) -> None:
    lines = ["\0\0\0\0\0\0\0\0", "a\0b", "\0a\0b"]
    for number, line in enumerate(lines):
        (tmp_path / f"{number}").write_text(f"{line}\n", encoding="utf-8", newline="\n")
        assert list(read_lines(tmp_path / f"{number}")) == [line]


@pytest.mark.parametrize("data", [b"ruso\rhulo\r", b"ruso\rhulo\rvani"])
def test_old_mac_line_ends_are_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    assert only_error(tmp_path / "x").startswith(": no line feed but 2 carriage returns: old Mac line ends?")
    (tmp_path / "y").write_bytes(data + b"\n")
    assert len(list(read_lines(tmp_path / "y"))) == 1
