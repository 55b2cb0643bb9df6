"""Opening files safely: packing, encodings, limits."""

import gzip
import io
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from core.ingest.formats import open_reader
from core.ingest.records import ImportRefused, Problem
from core.ingest.source import Limits, Source

TEXT = "item,score\nä,1\nb,2\n"


def values(data: bytes, name: str = "f.csv", **limits: int) -> list[list[str]]:
    reader = open_reader(Source.from_bytes(name, data, Limits(**limits)))
    return [list(reader.header), *(row[1] for row in reader.rows() if not isinstance(row, Problem))]


EXPECTED = [["item", "score"], ["ä", "1"], ["b", "2"]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_encoding_line_end_and_packing_reads_the_same(encoding: str, ends: str, packed: bool) -> None:
    data = TEXT.replace("\n", ends).encode(encoding)
    assert values(gzip.compress(data, mtime=0) if packed else data) == EXPECTED


def test_big_endian_utf16_is_known_by_its_mark() -> None:
    assert values(b"\xfe\xff" + TEXT.encode("utf-16-be")) == EXPECTED


def test_gzip_is_known_by_its_bytes_not_by_its_name() -> None:
    assert values(gzip.compress(TEXT.encode()), name="table.csv") == EXPECTED
    assert values(TEXT.encode(), name="table.csv.gz") == EXPECTED


def test_gzip_members_follow_one_another_and_may_be_padded() -> None:
    head, tail = TEXT[:14].encode(), TEXT[14:].encode()
    assert values(gzip.compress(head, mtime=0) + gzip.compress(tail) + b"\0" * 512) == EXPECTED


def test_a_packed_file_is_the_same_file() -> None:
    plain = Source.from_bytes("a.csv", TEXT.encode())
    assert Source.from_bytes("b.csv.gz", gzip.compress(TEXT.encode())).sha256() == plain.sha256()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f.csv is empty"),
        (b"\xef\xbb\xbf", "f.csv is empty"),
        (b" \r\n\n", "f.csv is empty"),
        (b"item,score\na,1\nb\0,2\n", "NUL byte in line 3"),
        (TEXT.encode("utf-16-le"), "NUL byte in line 1: .* UTF-16 without a byte order mark"),
        (b"item,score\na,1\nb\xff,2\n", "line 3 has the byte 0xff, which is not UTF-8"),
        (b"\xff\xfe" + TEXT.encode("utf-16-le")[:-1], "not valid UTF-16 near line"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-9], "ends in the middle of its gzip data"),
        (b"\x1f\x8bnothing", "broken gzip data"),
        (b'[{"item": 1}]', "JSON array; write one object a line"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(ImportRefused, match=message):
        values(data)


@pytest.mark.parametrize("line", [2, 1_000, 90_000])
def test_the_line_of_an_undecodable_byte_is_right_however_far_in(line: int) -> None:
    lines = [b"item,score", *(b"item\xc3\xa4,1" for _ in range(100_000))]
    lines[line - 1] = b"it\xe9em,1"
    with pytest.raises(ImportRefused, match=rf"line {line} has the byte 0xe9"):
        values(b"\n".join(lines))


class Bomb(io.RawIOBase):
    """Gzip data of `size` zero bytes or spaces, made while it is read."""

    def __init__(self, size: int, piece: bytes) -> None:
        self._pieces = self._packed(size, piece)
        self._held = b""

    @staticmethod
    def _packed(size: int, piece: bytes) -> Iterator[bytes]:
        packer = zlib.compressobj(9, wbits=31)
        for _ in range(size // len(piece)):
            yield packer.compress(piece)
        yield packer.flush()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._held) < size and (piece := next(self._pieces, None)) is not None:
            self._held += piece
        out, self._held = self._held[:size], self._held[size:]
        return out


@pytest.mark.parametrize("piece", [b"a,1\n" * (1 << 18), b"x" * (1 << 20)])
def test_a_gzip_bomb_is_refused_and_memory_stays_flat(piece: bytes) -> None:
    def opened() -> BinaryIO:
        return Bomb(5 << 30, piece)  # type: ignore[return-value]

    source = Source("bomb.csv.gz", opened, Limits(size=100 << 20))
    tracemalloc.start()
    with pytest.raises(ImportRefused, match="holds more than 104,857,600 bytes after decompression"):
        source.sha256()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_a_line_without_end_is_refused_before_it_fills_memory() -> None:
    source = Source.from_bytes("one.csv", b"item,score\n" + b"x" * 4_000_000, Limits(line=1_000_000))
    with pytest.raises(ImportRefused, match="line 2 is longer than 1,000,000 bytes"):
        list(open_reader(source).rows())


def test_more_rows_than_the_limit_are_refused() -> None:
    with pytest.raises(ImportRefused, match="more than 1 rows"):
        values(TEXT.encode(), rows=1)
    with pytest.raises(ImportRefused, match="more than 1 rows"):
        values(b'{"a": 1}\n{"a": 2}\n', rows=1)
