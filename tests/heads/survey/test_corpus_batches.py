import pytest

from heads.survey.conftest import sentences
from regard.heads.survey import Corpus
from regard.heads.survey import corpus_batches as module
from regard.heads.survey.corpus_batches import BatchPosition, CorpusBatches


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch):
    monkeypatch.setattr(module, "STRETCH_DOCUMENTS", 17)


def batches_of(reader, path, *, longest=19, tokens=60, split=False, **options):
    special = frozenset(reader.tokenizer.all_special_ids)
    return CorpusBatches(Corpus.open(path, **options), reader.tokenizer, longest, tokens, split, special)


def test_every_document_once_in_batches_of_alike_lengths(readers, corpus):
    found = list(batches_of(readers["bert"], corpus).after(BatchPosition()))
    assert sorted(part.document for batch in found for part in batch.parts) == list(range(37))
    assert [batch.number for batch in found] == list(range(len(found)))
    assert [batch.stretch for batch in found] == sorted(batch.stretch for batch in found)
    assert found[-1].stretch == 2
    for batch in found:
        lengths = [len(part.ids) for part in batch.parts]
        assert len(lengths) == 1 or len(lengths) * max(lengths) <= 60
        assert lengths == sorted(lengths)
    assert found[-1].position == Corpus.open(corpus).size
    shares = [batch.position for batch in found]
    assert shares == sorted(shares)


def test_going_on_at_a_bookmark_gives_the_same_batches(readers, corpus):
    made = batches_of(readers["bert"], corpus)
    found = list(made.after(BatchPosition()))
    first = next(batch for batch in found if batch.stretch == 2)
    assert list(made.after(BatchPosition(2, first.number))) == found[first.number :]


def test_long_documents_are_cut_or_split(readers, tmp_path):
    path = tmp_path / "c.txt"
    texts = [" ".join(["cat"] * 40), "the dog", *sentences(3)]
    path.write_text("\n".join(texts))
    (cut,) = batches_of(readers["bert"], path, tokens=10_000).after(BatchPosition())
    assert cut.truncated == 1
    assert cut.divided == 0
    ids = {part.document: part.ids for part in cut.parts}
    assert len(ids[0]) == 19
    assert ids[0][0] == 2
    assert ids[0][-1] == 3
    (split,) = batches_of(readers["bert"], path, tokens=10_000, split=True).after(BatchPosition())
    assert (split.truncated, split.divided) == (0, 1)
    parts = sorted((part.part, len(part.ids)) for part in split.parts if part.document == 0)
    assert parts == [(0, 19), (1, 19), (2, 8)]  # 17 + 17 + 6 words, each with both ends
    assert sum(part.ids.count(6) for part in split.parts if part.document == 0) == 40


def test_what_cannot_be_read_comes_with_the_first_batch_of_its_stretch(readers, tmp_path):
    path = tmp_path / "c.jsonl"
    good, bad = '{"text": "the cat"}', '{"no": 1}'
    path.write_text("\n".join([good] * 16 + [bad] + [bad] * 17 + [good]))
    found = list(batches_of(readers["bert"], path).after(BatchPosition()))
    assert [len(batch.failures) for batch in found if batch.stretch == 0] == [1, 0]
    assert [(len(batch.parts), len(batch.failures)) for batch in found if batch.stretch == 1] == [(0, 17)]
    assert found[-1].failures == ()


def test_texts_without_tokens_and_tokenizers_that_raise(readers, tmp_path, monkeypatch):
    path = tmp_path / "c.txt"
    path.write_text("the cat\n[PAD]\nthe dog\n")
    (batch,) = batches_of(readers["bert"], path).after(BatchPosition())
    assert [f.reason for f in batch.failures] == ["no token that the model knows"]
    assert len(batch.parts) == 2

    class Raises:
        def __call__(self, texts, **options):
            if "the cat" in texts:
                raise RuntimeError("no cats")
            return readers["bert"].tokenizer(texts, **options)

    made = batches_of(readers["bert"], path)
    monkeypatch.setitem(made.__dict__, "tokenizer", Raises())
    (batch,) = made.after(BatchPosition())
    assert [(f.document, f.reason) for f in batch.failures] == [
        (0, "RuntimeError: no cats"),
        (1, "no token that the model knows"),
    ]


def test_a_tokenizer_in_python(readers, tmp_path):
    class InPython:
        is_fast = False
        all_special_ids = (0, 2, 3)

        def __call__(self, text, **_):
            return {"input_ids": [4 + len(word) for word in text.split()]}

        def num_special_tokens_to_add(self):
            return 2

        def build_inputs_with_special_tokens(self, ids):
            return [2, *ids, 3]

    path = tmp_path / "c.txt"
    path.write_text("a bb ccc dddd\nx\n")
    made = CorpusBatches(Corpus.open(path), InPython(), 5, 100, True, frozenset({0, 2, 3}))
    (batch,) = made.after(BatchPosition())
    assert [part.ids for part in batch.parts] == [(2, 8, 3), (2, 5, 3), (2, 5, 6, 7, 3)]


def test_a_part_is_found_again(readers, tmp_path):
    path = tmp_path / "c.txt"
    path.write_text("\n".join(["the dog", " ".join(["cat"] * 40)]))
    made = batches_of(readers["bert"], path, split=True)
    found = made.find([(1, 2), (0, 0)])
    assert {place: len(part.ids) for place, part in found.items()} == {(0, 0): 4, (1, 2): 8}


def test_a_long_document_is_tokenized_a_segment_at_a_time(readers, tmp_path, monkeypatch):
    path = tmp_path / "c.txt"
    path.write_text("the dog\n" + " ".join(["cat"] * 40) + "\n" + "x" * 170 + "\nthe bird ran\n")
    (whole,) = batches_of(readers["bert"], path, tokens=10_000, split=True).after(BatchPosition())
    monkeypatch.setattr(module, "SEGMENT_CHARACTERS", 50)
    monkeypatch.setattr(module, "MAX_TOKENIZER_CHARACTERS", 60)
    given = []

    class Tokenizer:
        def __call__(self, texts, **options):
            given.append(texts)
            return readers["bert"].tokenizer(texts, **options)

    made = batches_of(readers["bert"], path, tokens=10_000, split=True)
    monkeypatch.setitem(made.__dict__, "tokenizer", Tokenizer())
    (batch,) = made.after(BatchPosition())
    assert max(sum(map(len, texts)) for texts in given) <= 60
    assert (batch.divided, batch.truncated) == (1, 0)
    assert [failure.document for failure in batch.failures] == [2]  # one word, unknown
    for document in (0, 1, 3):  # cut between words, so that no token is another
        counts = [sum(len(p.ids) - 2 for p in one.parts if p.document == document) for one in (batch, whole)]
        assert counts[0] == counts[1] > 0
    numbers = sorted(part.part for part in batch.parts if part.document == 1)
    assert numbers == list(range(len(numbers)))
    assert made.find([(1, numbers[-1])])[1, numbers[-1]] in batch.parts


def test_a_document_is_cut_before_it_is_tokenized(readers, tmp_path, monkeypatch):
    path = tmp_path / "c.txt"
    path.write_text("cat " * 5000 + "\nthe dog\n")
    (batch,) = batches_of(readers["bert"], path, tokens=10_000).after(BatchPosition())
    assert batch.truncated == 1
    assert batches_of(readers["bert"], path).characters == 4096
    assert batches_of(readers["bert"], path, longest=512).characters == 64 * 512
    monkeypatch.setattr(module, "CHARACTERS", 3000)
    first, last = batches_of(readers["bert"], path, tokens=100_000, split=True).after(BatchPosition())
    assert (first.truncated, first.divided) == (1, 1)
    assert sum(part.ids.count(6) for part in first.parts) == 750
    assert (last.truncated, last.divided, len(last.parts)) == (0, 0, 1)


class PanicException(BaseException):
    """The name that a panic in Rust has in Python."""


@pytest.mark.parametrize("error", [PanicException("x" * 5000), MemoryError("no\nmemory")])
def test_what_a_tokenizer_in_rust_may_raise(readers, tmp_path, monkeypatch, error):
    path = tmp_path / "c.txt"
    path.write_text("the cat\nthe dog\n")

    class Raises:
        def __call__(self, texts, **options):
            if "the cat" in texts:
                raise error
            return readers["bert"].tokenizer(texts, **options)

    made = batches_of(readers["bert"], path)
    monkeypatch.setitem(made.__dict__, "tokenizer", Raises())
    (batch,) = made.after(BatchPosition())
    [failure] = batch.failures
    assert failure.reason.startswith(type(error).__name__)
    assert len(failure.reason) <= 302
    assert "\n" not in failure.reason
    assert len(batch.parts) == 1


def test_an_interrupt_is_no_failure_of_a_text(readers, tmp_path, monkeypatch):
    path = tmp_path / "c.txt"
    path.write_text("the cat\n")

    class Interrupted:
        def __call__(self, *_, **__):
            raise KeyboardInterrupt

    made = batches_of(readers["bert"], path)
    monkeypatch.setitem(made.__dict__, "tokenizer", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        list(made.after(BatchPosition()))


def test_texts_that_the_tokenizer_does_not_know_are_failures(readers, tmp_path):
    path = tmp_path / "c.txt"
    path.write_text("the cat\ncat zebra lion\nthe dog zebra\n")
    (batch,) = batches_of(readers["bert"], path).after(BatchPosition())
    assert [(f.document, f.reason) for f in batch.failures] == [
        (1, "2 of 3 tokens are unknown to the tokenizer")
    ]
    assert sorted(part.document for part in batch.parts) == [0, 2]
