"""The bytes of a file, safely: plain or gzip, any of three encodings, never more than the limits, never all at once."""

import codecs
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from core.ingest.records import ImportRefused

_CHUNK = 1 << 18
_GZIP = b"\x1f\x8b"
_GZIP_WBITS = 31
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Where reading stops, so that no file can fill memory or disk.

    Attributes:
        size: Bytes after decompression.
        rows: Records.
        line: Bytes of one physical line, and characters of one field.
    """

    size: int = 4 << 30
    rows: int = 50_000_000
    line: int = 16 << 20


@dataclass(frozen=True)
class Source:
    """A file that can be read from the start as often as needed.

    Attributes:
        name: The file's name, without its folder.
        open: Opens the stored bytes.
        limits: Where reading stops.
    """

    name: str
    open: Callable[[], BinaryIO]
    limits: Limits = Limits()

    @classmethod
    def from_path(cls, path: Path, limits: Limits = Limits()) -> "Source":
        """A file on disk."""
        if not path.is_file():
            raise ImportRefused(f"{path} is no file; check the name")
        return cls(path.name, lambda: path.open("rb"), limits)

    @classmethod
    def from_bytes(cls, name: str, data: bytes, limits: Limits = Limits()) -> "Source":
        """An upload held in memory."""
        return cls(Path(name).name, lambda: io.BytesIO(data), limits)

    @property
    def stem(self) -> str:
        """The name without its endings."""
        return self.name.split(".")[0] or self.name

    def sha256(self) -> str:
        """Hash of the content after decompression: a file is the same file whether packed or not."""
        digest = hashlib.sha256()
        for chunk in self.content():
            digest.update(chunk)
        return digest.hexdigest()

    def content(self) -> Iterator[bytes]:
        """The decompressed bytes in pieces.

        Raises:
            ImportRefused: For broken gzip data or more bytes than the limit.
        """
        size = 0
        for chunk in self._unpacked():
            size += len(chunk)
            if size > self.limits.size:
                raise ImportRefused(
                    f"{self.name} holds more than {self.limits.size:,} bytes after decompression, which is the limit; "
                    "split it, or raise the limit (--max-bytes) when you trust it"
                )
            yield chunk

    def _unpacked(self) -> Iterator[bytes]:
        with self.open() as file:
            first = file.read(_CHUNK)
            pieces = _pieces(file, first)
            yield from self._inflated(pieces) if first.startswith(_GZIP) else pieces

    def _inflated(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Gzip members one after another, a bounded piece at a time."""
        inflater = zlib.decompressobj(_GZIP_WBITS)
        begun = False
        try:
            for piece in pieces:
                waiting = piece
                while waiting:
                    begun = True
                    yield inflater.decompress(waiting, _CHUNK)
                    waiting = inflater.unconsumed_tail
                    if inflater.eof:
                        waiting = inflater.unused_data.lstrip(b"\0")  # zeros may pad the end of a member
                        inflater, begun = zlib.decompressobj(_GZIP_WBITS), False
            while begun and (out := inflater.decompress(b"", _CHUNK)):
                yield out
        except zlib.error as error:
            raise ImportRefused(f"{self.name} is broken gzip data ({error}); fetch the file again") from error
        if begun and not inflater.eof:
            raise ImportRefused(f"{self.name} ends in the middle of its gzip data; fetch the file again")

    def text(self) -> io.TextIOWrapper:
        """The content as text without its byte order mark, lines with their own ends.

        Raises:
            ImportRefused: While reading: for NUL bytes, or for a line longer than the limit. Bytes that are not UTF-8
                raise `UnicodeDecodeError`, for which `undecodable` makes the message.
        """
        return io.TextIOWrapper(io.BufferedReader(_Stream(self._utf8()), _CHUNK), encoding="utf-8", newline="")

    def _utf8(self) -> Iterator[bytes]:
        """The content as UTF-8 bytes, checked for NUL bytes and endless lines."""
        lines, open_line = 1, 0
        for chunk in self._transcoded():
            if b"\0" in chunk:
                line = lines + _line_ends(chunk[: chunk.index(b"\0")])
                raise ImportRefused(
                    f"{self.name} has a NUL byte in line {line}: it is no text file, or UTF-16 without a byte order "
                    "mark; save it as UTF-8"
                )
            lines += _line_ends(chunk)
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
            open_line = open_line + len(chunk) if end < 0 else len(chunk) - end - 1
            if open_line > self.limits.line:
                raise ImportRefused(
                    f"{self.name}: line {lines} is longer than {self.limits.line:,} bytes, which is the limit; "
                    "it is no table of scores"
                )
            yield chunk

    def _transcoded(self) -> Iterator[bytes]:
        chunks = self.content()
        first = next(chunks, b"")
        while len(first) < len(codecs.BOM_UTF8) and (more := next(chunks, b"")):
            first += more
        if first.startswith(_UTF16):
            yield from self._from_utf16(first, chunks)
            return
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from chunks

    def _from_utf16(self, first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-16")()
        lines = 1
        try:
            for chunk in chain((first,), chunks):
                text = decoder.decode(chunk)
                lines += text.count("\n")
                yield text.encode()
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise ImportRefused(
                f"{self.name} is not valid UTF-16 near line {lines} ({error.reason}); save it as UTF-8"
            ) from error


def undecodable(name: str, lines_read: int, error: UnicodeDecodeError) -> ImportRefused:
    """The message for bytes that are not UTF-8.

    Args:
        name: The file's name.
        lines_read: Lines handed out before the piece that failed.
        error: What the decoder said.
    """
    line = lines_read + 1 + _line_ends(error.object[: error.start])
    byte = error.object[error.start]
    return ImportRefused(
        f"{name}: line {line} has the byte 0x{byte:02x}, which is not UTF-8; save the file as UTF-8 and import it again"
    )


def _line_ends(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def _pieces(file: BinaryIO, first: bytes) -> Iterator[bytes]:
    piece = first
    while piece:
        yield piece
        piece = file.read(_CHUNK)


class _Stream(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        while not self._held:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._held = memoryview(chunk)
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count
