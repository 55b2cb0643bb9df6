"""CSV, TSV and JSON Lines: every odd line is a problem with its place, never an exception of another kind."""

import csv as stdlib_csv
import gzip
import io
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.ingest.formats import open_reader
from core.ingest.mapping import Mapping
from core.ingest.records import ImportRefused, Problem, Record
from core.ingest.source import Source

TWO = Mapping({"item": ("item",), "score": ("score",)})


def read(data: bytes | str, name: str = "f.csv") -> list[Record | Problem]:
    content = data.encode() if isinstance(data, str) else data
    return list(open_reader(Source.from_bytes(name, content)).records(TWO))


def pairs(data: bytes | str) -> list[tuple[int, str, str]]:
    return [(row.line, row.item, row.score) for row in read(data) if isinstance(row, Record)]


def problems(data: bytes | str) -> list[tuple[int, str]]:
    return [(row.line, row.reason) for row in read(data) if isinstance(row, Problem)]


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_the_delimiter_is_read_off_the_header(delimiter: str) -> None:
    assert pairs(f"item{delimiter}score\na{delimiter}1\n") == [(2, "a", "1")]


def test_quoted_newlines_keep_the_line_numbers_right() -> None:
    text = 'item,score\n"a\nb",1\n\n"c\r\nd\re",2\nf,3\n'
    assert pairs(text) == [(2, "a\nb", "1"), (5, "c\r\nd\re", "2"), (8, "f", "3")]


def test_ragged_and_broken_rows_are_problems_and_the_rest_is_read() -> None:
    text = 'item,score\na,1\nb\nc,1,2\n"d"x,1\ne,5\n"f,6\n'
    assert pairs(text) == [(2, "a", "1"), (6, "e", "5")]
    assert [line for line, _ in problems(text)] == [3, 4, 5, 7]
    assert problems(text)[0][1] == "1 values where the header has 2"


def test_a_header_that_names_a_column_twice_is_refused() -> None:
    with pytest.raises(ImportRefused, match="names score more than once"):
        read("item,score,score\n")


def test_an_unnamed_column_gets_a_name() -> None:
    assert open_reader(Source.from_bytes("f.csv", b",score\n0,1\n")).header == ("column 1", "score")


def test_json_keeps_numbers_as_they_are_written_and_null_as_empty() -> None:
    lines = [
        '{"item": 1, "score": 9.2e+124}',
        '{"item": "b", "score": null}',
        '{"score": NaN, "item": "c"}',
        '{"item":"d"}',
    ]
    lines += ['{"item": "e", "score": true}', '{"item": "f", "score": -Infinity}', '{"item": "g", "score": [4.0]}']
    assert [row[1:] for row in pairs("\n".join(lines))] == [
        ("1", "9.2e+124"),
        ("b", ""),
        ("c", "NaN"),
        ("d", ""),
        ("e", "true"),
        ("f", "-Infinity"),
        ("g", '["4.0"]'),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[1]", "not a JSON object"),
        ("4", "not a JSON object"),
        ('{"item": 1, "item": 2}', "the key item stands twice"),
        ('{"item": {"a": 1, "a": 2}}', "the key a stands twice"),
        ('{"item": 1', "not JSON"),
        ('{"item": 1} x', "more text after the object"),
        ("{'item': 1}", "not JSON"),
        ('{"item": "\\u0000"}', "escaped NUL"),
        ('{"item": "\\ud800"}', "half of a surrogate pair"),
        ('{"item": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
def test_json_lines_that_are_no_object_are_problems_and_the_rest_is_read(line: str, reason: str) -> None:
    text = f'{{"item": "a", "score": 1}}\n\n{line}\n{{"item": "b", "score": 2}}\n'
    assert pairs(text) == [(1, "a", "1"), (4, "b", "2")]
    ((place, words),) = problems(text)
    assert place == 3
    assert reason in words


def test_an_escaped_backslash_before_u0000_is_plain_text() -> None:
    assert pairs('{"item": "\\\\u0000", "score": 1}') == [(1, "\\u0000", "1")]


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8))
@example(['"', "\r", "\n", "\r\n", ",", "", "\u2028", "\x1c", "\ufeff"])
def test_no_text_in_a_csv_cell_loses_or_changes_a_row(texts: list[str]) -> None:
    file = io.StringIO()
    writer = stdlib_csv.writer(file)
    writer.writerow(["item", "score"])
    writer.writerows([str(place), text] for place, text in enumerate(texts))
    found = pairs(file.getvalue())
    assert [(item, score) for _, item, score in found] == [(str(place), text) for place, text in enumerate(texts)]


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8))
def test_no_text_in_json_loses_or_changes_a_row(texts: list[str]) -> None:
    lines = [
        json.dumps({"item": str(place), "score": text}, ensure_ascii=place % 2 == 0) for place, text in enumerate(texts)
    ]
    assert [row[2] for row in pairs("\n".join(lines))] == texts


BYTES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=100).map(gzip.compress),
    st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"{", b"}", b'"item":', b"1", b"\\u", b"\xff", b"\t"])).map(
        b"".join
    ),
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([b"", b"item,score\n", b'{"item": 1, "score": 2}\n', b"\xff\xfe", b"\x1f\x8b", b"\xef\xbb\xbf"]),
    BYTES,
)
def test_random_bytes_give_records_problems_or_a_refusal(start: bytes, rest: bytes) -> None:
    try:
        reader = open_reader(Source.from_bytes("f", start + rest))
        role = {"item": (reader.header[0],), "score": (reader.header[-1],)}
        found = list(reader.records(Mapping(role)))
    except ImportRefused:
        return
    assert all(isinstance(row, Record | Problem) and row.line >= 1 for row in found)
