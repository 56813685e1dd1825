"""Texts to token ids and back: English in pieces of words, Chinese in characters.

English is lowercased. Chinese has no case, so nothing is lost; with 30,000 sentences, "The" and "the" are
learned twice as fast as one word; and a text typed without capitals is translated just as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from regard.errors import ModelFileError
from regard.translator.name_evidence import WORD, NameEvidence
from regard.translator.names import PLACEHOLDERS, HiddenNames, StandIn, hide_names, is_unknown
from regard.translator.sentence_splitting import split_sentences

PADDING, START, END, UNKNOWN = range(4)
SPECIALS = ("[PAD]", "[START]", "[END]", "[UNK]")
FORMAT = "regard characters 1"


@dataclass(frozen=True)
class EnglishTokens:
    """Pieces of lowercased words: byte pairs, with ``▁`` where a word begins, or those of a BERT.

    >>> english = EnglishTokens.learn(["The cat sat.", "The cat ran."] * 9, 60)
    >>> english.pieces("The cat sat.")
    ['▁the', '▁cat', '▁sat', '.']
    """

    tokenizer: Tokenizer

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> EnglishTokens:
        """Learn the ``size`` pieces that fit these sentences best."""
        tokenizer = Tokenizer(models.BPE(unk_token=SPECIALS[UNKNOWN]))
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), normalizers.Replace("’", "'"), normalizers.Lowercase(), normalizers.Strip()]
        )
        # Each punctuation mark is a piece, except the apostrophe: "don't" is one word.
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(), pre_tokenizers.Split(Regex(r"[^\w'▁]"), "isolated")]
        )
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(
            vocab_size=size, min_frequency=2, special_tokens=list(SPECIALS), show_progress=False
        )
        tokenizer.train_from_iterator(sentences, trainer)
        return cls(tokenizer)

    @classmethod
    def of_word_pieces(cls, pieces: Sequence[str]) -> EnglishTokens:
        """The pieces of a BERT: whole words, and ``##`` before pieces that continue one.

        >>> EnglishTokens.of_word_pieces(["cat", "##s", "."]).pieces("Cats.")
        ['cat', '##s', '.']
        """
        names = [*SPECIALS, *PLACEHOLDERS]
        vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([*names, *pieces]))}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIALS[UNKNOWN]))
        # As BERT does it, but characters of the private use area stay: they are placeholders for names.
        tokenizer.normalizer = normalizers.Sequence(
            [
                normalizers.Replace("’", "'"),
                normalizers.NFD(),
                normalizers.StripAccents(),
                normalizers.Lowercase(),
            ]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        return cls(tokenizer)

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, as they are written in the vocabulary."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).tokens)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without start and end."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts."""
        return [list(one.ids) for one in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def knows(self, ids: Iterable[int]) -> bool:
        """Whether anything in these ids is more than unknown characters and spaces."""
        return not set(ids) <= {UNKNOWN, self.tokenizer.token_to_id("▁")}

    def to_json(self) -> str:
        """The vocabulary as text."""
        return str(self.tokenizer.to_str())

    @classmethod
    def from_json(cls, text: str) -> EnglishTokens:
        """The vocabulary in a text."""
        try:
            return cls(Tokenizer.from_str(text))
        except Exception as error:  # tokenizers raises nothing more specific
            raise ModelFileError(
                "The English vocabulary must be a file of the tokenizers library.",
                got="{error}",
                do="Export the model again.",
                error=error,
            ) from error


@dataclass(frozen=True)
class ChineseCharacters:
    """One id per character; rare ones are unknown.

    >>> chinese = ChineseCharacters.learn(["猫坐。", "猫跑。"], least=2)
    >>> chinese.encode("猫坐。"), chinese.decode([5, 3, 4, 2])
    ([5, 3, 4], '猫。')
    """

    characters: tuple[str, ...]

    @classmethod
    def learn(cls, sentences: Iterable[str], *, least: int = 2) -> ChineseCharacters:
        """The characters that occur at least ``least`` times."""
        counts = Counter(character for sentence in sentences for character in sentence)
        return cls(tuple(sorted(character for character, count in counts.items() if count >= least)))

    def __post_init__(self) -> None:
        ids = {character: index for index, character in enumerate(self.characters, len(SPECIALS))}
        object.__setattr__(self, "_ids", ids)

    def __len__(self) -> int:
        return len(SPECIALS) + len(self.characters)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without start and end."""
        ids: dict[str, int] = self.__dict__["_ids"]
        return [ids.get(character, UNKNOWN) for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids; padding, start, end and unknown have none."""
        first = len(SPECIALS)
        return "".join(self.characters[index - first] for index in ids if index >= first)

    def to_json(self) -> str:
        """The vocabulary as text."""
        return json.dumps({"format": FORMAT, "characters": "".join(self.characters)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ChineseCharacters:
        """The vocabulary in a text."""
        try:
            named = json.loads(text)
            if named["format"] != FORMAT:
                raise ValueError(named["format"])
            return cls(tuple(named["characters"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ModelFileError(
                "The Chinese vocabulary must be a JSON object with its format ({FORMAT!r}) "
                "and its characters.",
                got="{type}: {error}",
                do="Export the model again.",
                FORMAT=FORMAT,
                type=type(error).__name__,
                error=error,
            ) from error


@dataclass(frozen=True)
class Vocabularies:
    """Both sides of a translator, the English words that it was taught, and the stand-ins for unknown names.

    Words are in lower case; without any, none is taken for unknown.

    >>> from regard.translator import embedded
    >>> embedded().vocabularies.english.encode("I love you.") != []
    True
    """

    english: EnglishTokens
    chinese: ChineseCharacters
    words: frozenset[str] = frozenset()
    stand_ins: tuple[StandIn, ...] = ()  # for names
    evidence: NameEvidence | None = None  # which known words are names

    def hide_names(self, text: str) -> HiddenNames:
        """The text with its names hidden, as far as something can stand in for them."""
        if not self.stand_ins:
            return HiddenNames(text)
        return hide_names(text, self.words, self.stand_ins, self.evidence)

    def unknown(self, text: str) -> list[str]:
        """The words and signs of a text that were never taught, without names that are copied."""
        return list(dict.fromkeys(word for one in split_sentences(text) for word in self._unknown(one)))

    def _unknown(self, sentence: str) -> list[str]:
        hidden = self.hide_names(sentence).text
        found = self.english.tokenizer.encode(hidden, add_special_tokens=False)
        places = zip(found.ids, found.offsets, strict=True)
        signs = [hidden[first:stop].strip() for number, (first, stop) in places if number == UNKNOWN]
        words = [word for word in WORD.findall(hidden) if is_unknown(word, self.words)]
        return [*words, *(sign for sign in signs if sign and sign not in "".join(words))]
