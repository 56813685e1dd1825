import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.errors import ArgumentError, DataError
from regard.heads.survey import Corpus


def texts(path, **options):
    return [document.text for document in Corpus.open(path, **options)]


def problems(path, **options):
    return [(d.number, d.where, d.problem) for d in Corpus.open(path, **options) if d.problem is not None]


def test_lines_paragraphs_and_whole_files(tmp_path):
    path = tmp_path / "c.txt"
    path.write_text("One day\r\nit rained. \n\n  \n猫\n", encoding="utf-8")
    assert texts(path) == ["One day", "it rained.", "猫"]
    assert texts(path, unit="paragraph") == ["One day\r\nit rained.", "猫"]
    assert texts(path, unit="file") == ["One day\r\nit rained. \n\n  \n猫"]
    assert texts(path, limit=2) == ["One day", "it rained."]
    assert [d.number for d in Corpus.open(path)] == [0, 1, 2]
    assert [d.where for d in Corpus.open(path)] == ["c.txt:1", "c.txt:2", "c.txt:5"]
    assert [d.where for d in Corpus.open(path, unit="paragraph")] == ["c.txt:1", "c.txt:5"]
    assert list(Corpus.open(path))[-1].position == Corpus.open(path).size


def test_a_line_that_is_no_text_does_not_stop_the_others(tmp_path):
    path = tmp_path / "c.txt"
    path.write_bytes(b"good\nbad \xff\nlast")
    assert texts(path) == ["good", "", "last"]
    assert problems(path) == [(1, "c.txt:2", "not UTF-8: invalid start byte at byte 4")]
    assert problems(path, unit="paragraph")[0][2].startswith("not UTF-8")


def test_a_folder_in_the_order_of_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "2.txt").write_text("second\nfile")
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "c.jsonl").write_text('{"text": "third"}\n')
    (tmp_path / "notes.md").write_text("left out")
    assert texts(tmp_path) == ["first", "second\nfile", "third"]
    assert texts(tmp_path, unit="line") == ["first", "second", "file", "third"]
    corpus = Corpus.open(tmp_path)
    assert [d.where for d in corpus] == ["a.txt", "b/2.txt", "c.jsonl:1"]
    assert list(corpus)[-1].position == corpus.size


def test_jsonl(tmp_path):
    path = tmp_path / "c.jsonl"
    lines = ['{"text": "one", "body": "eins"}', "nonsense", '{"text": 5}', '["list"]', '{"text": " "}']
    path.write_text("\n".join(lines))
    assert texts(path)[0] == "one"
    assert texts(path, field="body")[0] == "eins"
    assert [(number, problem.split(":")[0]) for number, _, problem in problems(path)] == [
        (1, "not JSON"),
        (2, "no text in field 'text'"),
        (3, "no text in field 'text'"),
        (4, "empty"),
    ]


def test_parquet(tmp_path):
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"text": ["one", None, "three"], "id": [1, 2, 3]}), path, row_group_size=2)
    assert texts(path) == ["one", "", "three"]
    assert problems(path) == [(1, "c.parquet:2", "no text in 'text'")]
    assert Corpus.open(path).size == 3
    assert [d.position for d in Corpus.open(path)] == [1, 2, 3]
    with pytest.raises(DataError, match=r"columns = text, id\). Got field = 'body'"):
        texts(path, field="body")
    (tmp_path / "d.parquet").write_text("no such thing")
    with pytest.raises(DataError, match=r"ends in \.parquet must be Parquet"):
        texts(tmp_path / "d.parquet")


def test_bad_input_is_named(tmp_path):
    with pytest.raises(DataError, match=r"Got .*none\.txt, which does not exist"):
        Corpus.open(tmp_path / "none.txt")
    with pytest.raises(DataError, match="A folder of texts needs files"):
        Corpus.open(tmp_path)
    (tmp_path / "c.txt").write_text("text")
    with pytest.raises(ArgumentError, match="Got unit = 'word'"):
        Corpus.open(tmp_path / "c.txt", unit="word")
    with pytest.raises(ArgumentError, match="Got limit = 0"):
        Corpus.open(tmp_path / "c.txt", limit=0)


def test_the_digest_tells_corpora_apart(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("a text\n")
    two.write_text("a text\n")
    assert Corpus.open(one).digest() == Corpus.open(two).digest()
    two.write_text("a tent\n")
    assert Corpus.open(one).digest() != Corpus.open(two).digest()
    assert json.dumps(Corpus.open(one).digest())


def test_a_document_is_read_as_far_as_it_may_be_long(tmp_path):
    path = tmp_path / "c.txt"
    path.write_text("猫" * 30 + "\n" + "ab " * 5 + "\n\n" + " " * 99 + "x\nlast", encoding="utf-8")
    found = list(Corpus.open(path).documents(10))
    assert [d.text for d in found] == ["猫" * 10, "ab ab ab a", "", "last"]
    assert [d.cut for d in found] == [True, True, True, False]
    assert [d.problem for d in found] == [None, None, "empty", None]
    assert [d.where for d in found] == ["c.txt:1", "c.txt:2", "c.txt:4", "c.txt:5"]
    assert found[-1].position == path.stat().st_size
    found = list(Corpus.open(path, unit="paragraph").documents(10))
    assert [(d.text, d.cut, d.where) for d in found] == [
        ("猫" * 10, True, "c.txt:1"),
        ("", True, "c.txt:4"),
    ]
    [whole] = Corpus.open(path, unit="file").documents(10)
    assert (whole.text, whole.cut, whole.position) == ("猫" * 10, True, path.stat().st_size)


def test_lines_of_json_that_cannot_be_read(tmp_path, monkeypatch):
    from regard.heads.survey import corpus

    monkeypatch.setattr(corpus, "LINE", 7000)
    path = tmp_path / "c.jsonl"
    lines = ['{"text": "' + "x" * 7000 + '"}', "9" * 5000, "[" * 6000, '{"text": "one\\u0000two"}']
    path.write_text("\n".join(lines) + '\n{"text": "' + "y" * 50 + '"}')
    found = list(Corpus.open(path).documents(20))
    assert [d.problem and d.problem.split(":")[0] for d in found] == [
        "a line of more than 7,000 bytes",
        "not JSON",
        "not JSON",
        None,
        None,
    ]
    assert (found[3].text, found[4].text, found[4].cut) == ("one\0two", "y" * 20, True)
    assert found[-1].position == path.stat().st_size


def test_one_long_text_in_all_rows_of_parquet(tmp_path):
    path = tmp_path / "c.parquet"
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 2000), pa.array(["long " * 20_000]))
    pq.write_table(pa.table({"text": column}), path)  # 200 MB if each row had its own
    found = [(d.text, d.cut) for d in Corpus.open(path).documents(9)]
    assert found == [("long long", True)] * 2000


def test_a_damaged_page_of_parquet(tmp_path):
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"text": [f"a text of number {n}" for n in range(99)]}), path)
    contents = bytearray(path.read_bytes())
    contents[4:60] = bytes(56)
    path.write_bytes(contents)
    with pytest.raises(DataError, match=r"ends in \.parquet must be Parquet"):
        texts(path)


def test_a_file_name_that_is_not_utf_8(tmp_path):
    path = tmp_path / "caf\udce9.txt"
    try:
        path.write_text("a text")
    except (OSError, UnicodeError):
        pytest.skip("this system has no such names")
    assert [d.where for d in Corpus.open(tmp_path)] == ["caf\udce9.txt"]
    assert Corpus.open(tmp_path).digest() != Corpus.open(path).digest()
