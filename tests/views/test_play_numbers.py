"""What playables compute in Chromium equals the reference: attention, masks, costs, the transformer."""

import copy
import json
import random

import numpy as np
import pytest
import torch

import regard
from fuzz.rounds import ROUNDS
from regard import masks
from regard.errors import MaskSyntaxError, RegardError
from regard.kernels import plan, reference
from regard.kernels.biases import alibi
from regard.lessons.playable_pages import sentence_start
from regard.lessons.sentence_explanation import attend_sentence, words_of
from regard.lessons.translator_numbers import TRANSLATED, translator_numbers
from regard.nn import RotaryPositions, SinusoidalPositions
from views.playing import Engine

CLOSE = 1e-9
TRIES = 300
LENGTHS = [1024, 8192, 131072]


@pytest.fixture(scope="module")
def engine(browser):
    context = browser.new_context()
    yield Engine(context.new_page())
    context.close()


def compare(found, wanted, tolerance=CLOSE):
    np.testing.assert_allclose(np.array(found, float), wanted, rtol=tolerance, atol=tolerance)


# ---- attention -------------------------------------------------------------------------------


def attention_case(rng):
    queries, keys, channels, width = rng.integers(1, 8, 4)
    size = 10.0 ** rng.integers(-2, 4)  # scores of 1000 overflow without care
    case = {
        "q": (rng.normal(size=(queries, channels)) * size).tolist(),
        "k": rng.normal(size=(keys, channels)).tolist(),
        "v": rng.normal(size=(keys, width)).tolist(),
        "options": {},
    }
    if rng.random() < 0.5:
        case["options"]["allowed"] = (rng.random((queries, keys)) < 0.6).tolist()
    if rng.random() < 0.3:
        case["options"]["bias"] = rng.normal(size=(queries, keys)).tolist()
    if rng.random() < 0.3:
        case["options"]["scale"] = float(rng.random())
    return case


def test_attention_equals_the_reference(engine):
    rng = np.random.default_rng(0)
    cases = [attention_case(rng) for _ in range(TRIES)]
    assert any(not any(row) for case in cases for row in case["options"].get("allowed", []))
    results = engine.ask("play.attentionSteps(given.q, given.k, given.v, given.options)", cases)
    for case, found in zip(cases, results, strict=True):
        options = dict(case["options"])
        mask = options.pop("allowed", None)
        wanted = reference.attention(case["q"], case["k"], case["v"], mask=mask, **options)
        for name in ("dots", "scores", "biased", "masked", "lse", "weights", "output"):
            if any(step.name == name for step in wanted):
                compare(found[name], wanted[name])
            else:
                assert found[name] is None


def sentence_case(rng):
    heads = int(rng.choice([1, 2, 4]))
    words = int(rng.integers(1, 9))
    kinds = ["none", "sinusoidal", "alibi"] + ["rotary"] * (heads < 4)
    return {
        "x": rng.normal(size=(words, 4)).tolist(),
        "w": {name: rng.normal(size=(4, 4)).tolist() for name in ("w_q", "w_k", "w_v", "w_o")},
        "options": {
            "heads": heads,
            "positions": str(rng.choice(kinds)),
            "allowed": (rng.random((words, words)) < 0.7).tolist() if rng.random() < 0.5 else None,
        },
    }


def multi_head(case):
    """The same by the reference; positions by the library's own modules, which are tables of float32."""
    x, (w_q, w_k, w_v, w_o) = np.array(case["x"]), (np.array(one) for one in case["w"].values())
    heads, kind, mask = (case["options"][name] for name in ("heads", "positions", "allowed"))
    options = {}
    if kind == "sinusoidal":
        x = SinusoidalPositions(4)(torch.tensor(x)[None])[0].numpy()
    if kind == "alibi":
        options["bias"] = alibi(heads).dense(len(x), len(x)).double().numpy()
    if kind != "rotary":
        return reference.multi_head(x, w_q, w_k, w_v, w_o, heads=heads, mask=mask, **options).output
    turn = RotaryPositions(4 // heads)
    q, k, v = (reference.split_heads(x @ w, heads) for w in (w_q, w_k, w_v))
    q, k = (turn(torch.tensor(one)[None])[0].numpy() for one in (q, k))
    return reference.combine_heads(reference.attention(q, k, v, mask=mask).output) @ w_o


def test_a_sentence_equals_the_reference_with_heads_masks_and_positions(engine):
    rng = np.random.default_rng(1)
    cases = [sentence_case(rng) for _ in range(TRIES)]
    assert {case["options"]["positions"] for case in cases} == {"none", "sinusoidal", "alibi", "rotary"}
    results = engine.ask("play.multiHeadSteps(given.x, given.w, given.options).output", cases)
    for case, found in zip(cases, results, strict=True):
        exact = case["options"]["positions"] in ("none", "alibi")
        compare(found, multi_head(case), CLOSE if exact else 2e-5)


def test_the_slopes_of_alibi(engine):
    for heads, found in zip(range(1, 20), engine.ask("play.alibiSlopes(given)", list(range(1, 20)))):
        compare(found, alibi(heads).table, 1e-6)


def test_one_query_with_temperature_and_dimension(engine):
    rng = np.random.default_rng(2)
    cases = [
        {
            "query": rng.uniform(-3, 3, 2).tolist(),
            "keys": rng.uniform(-3, 3, (int(rng.integers(2, 7)), 2)).tolist(),
            "values": None,
            "temperature": float(2.0 ** rng.integers(-3, 4)),
            "channels": 2,
            "scaled": bool(rng.random() < 0.5),
        }
        for _ in range(TRIES)
    ]
    for case, found in zip(cases, engine.ask("play.queryResult(given)", cases), strict=True):
        scale = 1 / case["temperature"] / (np.sqrt(2) if case["scaled"] else 1)
        wanted = reference.attention([case["query"]], case["keys"], case["keys"], scale=scale)
        for name in ("scores", "weights", "output"):
            compare(found[name], wanted[name][0])
        w = wanted["weights"][0]
        compare(found["slopes"], np.diag(w) - np.outer(w, w))


def test_the_gradient_of_one_query_is_that_of_autograd(engine):
    scores = torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64)
    wanted = torch.func.jacrev(lambda s: torch.softmax(s, 0))(scores)
    compare(engine.ask("play.softmaxSlopes(play.softmaxRow(given).weights)", [scores.tolist()])[0], wanted)


def test_without_the_root_of_d_softmax_saturates_and_the_gradient_vanishes(engine):
    rng = np.random.default_rng(3)
    cases = []
    for _ in range(60):
        query, keys = rng.uniform(-1, 1, 2).tolist(), rng.uniform(-1, 1, (3, 2)).tolist()
        shared = {"query": query, "keys": keys, "values": None, "temperature": 1}
        cases += [{**shared, "channels": 512, "scaled": scaled} for scaled in (True, False)]
    learnable = np.array([one["learnable"] for one in engine.ask("play.queryResult(given)", cases)])
    scaled, plain = learnable[::2], learnable[1::2]
    assert scaled.min() > 0.2
    assert np.median(plain) < 0.05
    assert (plain <= scaled).all()


# ---- the sentence that the page begins with --------------------------------------------------


@pytest.mark.parametrize("text", ["I love AI", "The cat's hat, again.", "我 喜欢 学习 AI 技术", "我喜欢AI"])
def test_the_page_begins_with_the_numbers_of_explain(engine, text):
    start = sentence_start(text)
    lesson = attend_sentence(text)
    x = [start["vectors"][word] for word in start["words"]]
    code = "play.multiHeadSteps(given.x, given.w, {})"
    (found,) = engine.ask(code, [{"x": x, "w": start["matrices"]}])
    compare(found["output"], lesson.trace["output"])
    compare(found["each"][0]["weights"], lesson.trace["weights"][0])


def test_words_are_those_of_explain(engine):
    rng = random.Random(4)
    signs = [
        "a",
        "B",
        "é",
        "猫",
        "狗",
        " ",
        "  ",
        "'",
        "’",
        ".",
        ",",
        "_",
        "7",
        "²",
        "-",
        "\n",
        "ß",
        "か",
        "😀",
    ]
    texts = ["".join(rng.choices(signs, k=rng.randint(0, 12))) for _ in range(TRIES)]
    for text, found in zip(texts, engine.ask("play.wordsIn(given)", texts), strict=True):
        assert tuple(found) == words_of(text), text


# ---- masks -----------------------------------------------------------------------------------

NUMBERS = [0, 0, 1, 1, 2, 3, 5, 8, -1, 100, 2**40, -(2**63), 2**63 - 1, 2**63, "007"]
NAMED = [
    "before",
    "after",
    "length",
    "start",
    "stop",
    "ids",
    "key_ids",
    "keep",
    "lengths",
    "table",
    "shifted",
]
BROKEN = ["causl", "widow(3)", "Window(1,2)", "zzzz", "dens([1])", "3", "", "∀", "'", "😀 x", "every(2).X"]
EDGES = [
    "~" * 99 + "causal",
    "~" * 100 + "causal",
    "(" * 99 + "causal" + ")" * 99,
    "(" * 100 + "causal" + ")" * 100,
    "(" * 99 + "local_global(2)" + ")" * 99,
    "dense(" + "[" * 16 + "1" + "]" * 16 + ")",
    "dense(" + "[" * 17 + "1" + "]" * 17 + ")",
    "documents([0*9999999999])",
    "documents([0*2097153])",
    "|".join(["causal"] * 10_001),
    "neighbourhood([3, 3], 1, shifted=[1, 2])",
    "neighbourhood([2]*9, 1)",
    "neighbourhood([100000, 100000], 1)",
    "neighbourhood([[1, 0], [1, 1]], 0)",
    "padding([0*70])",
    "window([1, 10], 0)",
    "window([True, False], 0)",
    "x" * 70,
    "causal &\n\twindow(3,\u30000)",
    "causal # window",
]


class MaskTexts:
    """Random texts, most of them nearly right, many of them right."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def small(self):
        return str(self.rng.choice([0, 1, 2, 3, 5, 8]))

    def table(self):
        rng = self.rng
        kind = rng.choice(["empty", "rows", "bools", "bits", "ids", "run", "mixed"])
        if kind == "rows":
            width = rng.choice([2, 3, 8])
            rows = [[rng.choice("01") for _ in range(width)] for _ in range(rng.randint(1, 3))]
            if rng.random() < 0.1:
                rows[0].append("1")
            return "[" + ", ".join(f"[{', '.join(row)}]" for row in rows) + "]"
        if kind == "run":
            return f"[0*{rng.choice([4, 4, 7, 0])}, 1*4]"
        if kind == "mixed":
            return "[True, 2, [3], None]"
        entries = {"empty": [""], "bools": ["True", "False"], "bits": ["0", "1"], "ids": list("01234")}[kind]
        count = 0 if kind == "empty" else 8 if rng.random() < 0.8 else 3
        return f"[{', '.join(rng.choice(entries) for _ in range(count))}]"

    def value(self):
        return self.rng.choice(
            [self.small, self.table, lambda: str(self.rng.choice(NUMBERS)), lambda: "None", lambda: "True"]
        )()

    def pattern(self):
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice(BROKEN)
        if rng.random() < 0.25:
            name = rng.choice(list(masks.parser._PATTERNS))
            values = [
                (f"{rng.choice(NAMED)}=" if rng.random() < 0.25 else "") + self.value()
                for _ in range(rng.randint(0, 3))
            ]
            return f"{name}({', '.join(values)})"
        return rng.choice(
            [
                "causal",
                "causal()",
                f"window({self.small()}, {rng.choice([self.small(), 'None'])})",
                f"prefix({self.small()})",
                f"span({self.small()}, {self.small()})",
                f"every({rng.choice([1, 2, 3])})",
                f"local_global({rng.choice([1, 2, 3])})",
                f"documents({self.table()})",
                f"documents([0*3, 1*5], {self.table()})",
                f"padding({self.table()})",
                f"padding(lengths={self.table()})",
                f"dense({self.table()})",
                "neighbourhood([2, 4], 1)",
                "neighbourhood([2, 4], [0, 2], shifted=True)",
                "neighbourhood([2, 2, 2], 1)",
                "everything()",
                "nothing",
            ]
        )

    def expression(self, depth=0):
        kind = self.rng.random()
        if depth > 3 or kind < 0.45:
            return self.pattern()
        if kind < 0.6:
            return f"~{self.expression(depth + 1)}"
        if kind < 0.78:
            return f"({self.expression(depth + 1)}){self.rng.choice(['', '.T'])}"
        sign = self.rng.choice([" & ", " | ", "&", "|"])
        return self.expression(depth + 1) + sign + self.expression(depth + 1)

    def text(self):
        text = self.expression()
        if text and self.rng.random() < 0.2:
            at = self.rng.randrange(len(text))
            text = text[:at] + self.rng.choice(["", *"&|~()[],.=*x1 \n#"]) + text[at + 1 :]
        return text


def read(text, queries, keys):
    """What the library says about a text at these lengths, in the form in which the page says it."""
    try:
        mask = masks.parse(text)
    except MaskSyntaxError as error:
        said = {lang: RegardError.in_words(error, lang) for lang in ("en", "zh")}
        return {"wrong": {"position": error.position, **said}}
    found = {"text": repr(mask), "lead": list(mask.lead), "rows": None, "pairs": None, "error": None}
    try:
        dense = mask.dense(queries, keys).numpy()
    except RegardError as error:
        return {**found, "error": {lang: error.in_words(lang) for lang in ("en", "zh")}}
    rows = dense.reshape(-1, queries, keys).astype(int).tolist()
    return {**found, "rows": rows, "pairs": plan(mask, queries, keys).pairs}


def test_the_mask_language_is_the_library_s_word_for_word(engine):
    texts = MaskTexts(5)
    cases = [[texts.text(), texts.rng.choice([8, 8, 8, 5, 9]), 8] for _ in range(600 * ROUNDS)]
    cases += [[text, 8, 8] for text in EDGES]
    cases += [["prefix(2).T", 9, 8], ["padding(lengths=[[0, 1, 1]]).T", 9, 8], ["every(2).T", 11, 8]]
    results = engine.ask("play.readMask(...given)", cases)
    wanted = [read(*case) for case in cases]
    assert sum("wrong" not in one for one in wanted) > 150  # of those many have errors, and many do not
    assert sum("wrong" in one for one in wanted) > 150
    assert sum(one.get("rows") is not None for one in wanted) > 100
    for case, found, one in zip(cases, results, wanted, strict=True):
        assert found == one, case


COSTED = [
    "causal",
    "everything()",
    "nothing()",
    "window(4, 0)",
    "causal & (window(4, 0) | prefix(2))",
    "local_global(64)",
    "every(2)",
    "~every(3) & causal",
    "(every(7) | every(5).T) & window(100, 20)",
    "causal & ~span(3, 900)",
    "dense([[[1]], [[0]], [[1]], [[1]], [[0]], [[0]], [[1]], [[1]]]) & causal",
]


@pytest.mark.parametrize("text", COSTED)
def test_pairs_and_costs_from_1k_to_128k_are_those_of_regard_cost(engine, text):
    wanted = regard.cost(LENGTHS, mask=text, ways=["dense", "allowed", "regard"])
    (found,) = engine.ask("play.costOf(given.text, given.lengths)", [{"text": text, "lengths": LENGTHS}])
    for one in found:
        assert (one["regard"] is None) == ("dense(" in text)  # its plan is not computed in the page
        for way in ("dense", "allowed", *(["regard"] if one["regard"] else [])):
            cost = wanted[one["length"], way]
            told = {"pairs": cost.pairs, "operations": cost.operations, "bytes": cost.bytes}
            assert {name: int(value) for name, value in one[way].items()} == told, (one["length"], way)


class PlannedTexts(MaskTexts):
    """Random masks without tables, over lengths at which tiles matter."""

    def small(self):
        return str(self.rng.choice([0, 1, 3, 17, 63, 64, 65, 100, 200, 511, 700, 1500]))

    def pattern(self):
        return self.rng.choice(
            [
                "causal",
                f"window({self.small()}, {self.small()})",
                f"window({self.small()}, None)",
                f"window(None, {self.small()})",
                f"prefix({self.small()})",
                f"span({self.rng.randint(0, 300)}, {self.rng.randint(300, 2000)})",
                f"every({self.rng.choice([1, 2, 3, 7, 40, 64, 100, 300])})",
                f"local_global({self.rng.choice([2, 16, 64, 200])})",
                "everything",
                "nothing",
            ]
        )


def test_what_regard_computes_is_what_it_plans(engine):
    texts = PlannedTexts(11)
    lengths = [300, 1000, 1024, 1337, 2048, 4500]
    cases = [[texts.expression(), texts.rng.choice(lengths)] for _ in range(300 * ROUNDS)]
    found = engine.ask("play.plannedPairs(...given)", cases)
    paths = set()
    for (text, length), pairs in zip(cases, found, strict=True):
        wanted = plan(masks.parse(text), length)
        paths.add(wanted.path)
        assert pairs == wanted.computed, (text, length)
    assert paths >= {"empty", "full", "banded", "block-sparse", "gathered"}


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("neighbourhood([32, 32], 3)", 1024),
        ("neighbourhood([16, 8, 8], [1, 2, 3], shifted=True).T & causal", 1024),
        ("causal & documents([0*700, 1*300, 0*24])", 1024),
        ("padding([True*1000, False*24]) | every(5).T", 1024),
    ],
)
def test_costs_of_masks_with_tables(engine, text, length):
    cost = regard.cost(length, mask=text, ways=["allowed"])[length, "allowed"]
    (found,) = engine.ask("play.costOf(given.text, given.lengths)", [{"text": text, "lengths": [length]}])
    assert found[0]["allowed"] == {"pairs": cost.pairs, "operations": cost.operations, "bytes": cost.bytes}


def test_the_likeness_of_words_is_difflib_s(engine):
    from difflib import SequenceMatcher

    rng = random.Random(6)
    pairs = [["".join(rng.choices("abcd_", k=rng.randint(0, 9))) for _ in range(2)] for _ in range(TRIES)]
    for (one, other), found in zip(pairs, engine.ask("play.likeness(...given)", pairs), strict=True):
        assert found == pytest.approx(SequenceMatcher(None, one, other).ratio())


# ---- the transformer -------------------------------------------------------------------------


def two_shapes():
    """A translator whose encoder has the shape of a trained BERT, with random weights."""
    from regard.nn import Seq2Seq
    from regard.translator import Translator, embedded

    torch.manual_seed(3)
    one = embedded()
    model = Seq2Seq(
        one.model.source.vocabulary, one.model.target.vocabulary, width=24, heads=2, encoder_layers=2,
        decoder_layers=2, length=128,
        encoder={
            "width": 40, "heads": 5, "hidden": 56, "norm": "post", "activation": "gelu",
            "positions": "learned", "eps": 1e-12, "embedding_norm": True,
        },
    )  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():  # also norms and biases, which begin as ones and zeros
            parameter += 0.2 * torch.randn_like(parameter)
    return Translator(model.eval(), one.vocabularies)


@pytest.mark.parametrize("built_in", [True, False])
def test_the_page_computes_what_the_translator_computes(engine, built_in):
    """Norms, residual sums and positions are computed in the page; they end where the model ends."""
    from regard.translator import embedded

    translator = embedded() if built_in else two_shapes()
    text = TRANSLATED if built_in else "Go."
    model = translator.model
    start = translator_numbers(text, translator)
    code = "(({ context, final }) => ({ context, final }))(new play.TransformerNumbers(given))"
    (found,) = engine.ask(code, [json.loads(json.dumps(start))])
    source = torch.tensor([translator.encode(text)])
    target = torch.tensor([[1, *translator.encode_translation(text, start["translation"])]])
    ends = {}
    hook = model.decoder.register_forward_hook(lambda _module, _given, out: ends.setdefault("final", out))
    with torch.no_grad():
        encoded = model.encode(source)
        logits = model.decode(target, encoded)
    hook.remove()
    compare(found["context"], encoded.context[0], 2e-4)
    compare(found["final"], ends["final"][0], 2e-4)
    best = torch.softmax(logits[0], -1).max(-1).values
    compare([row[0][1] for row in start["candidates"]], best, 1e-4)


def test_the_weights_in_the_page_of_the_transformer_sum_to_1():
    found = translator_numbers("I love you.")
    arrays, sizes = found["arrays"], found["sizes"]
    weights = {name: one for name, one in arrays.items() if name.endswith("_weights")}
    assert len(weights) == sizes["encoder_layers"] + 2 * sizes["decoder_layers"]
    for one in weights.values():
        import base64

        values = np.frombuffer(base64.b64decode(one["data"]), "<f4").reshape(one["shape"])
        compare(values.sum(-1), np.ones(one["shape"][:2]), 1e-5)


def test_the_stacks_of_a_translator_may_differ():
    from regard.nn import EncoderLayer
    from regard.translator import Translator, embedded

    one = embedded()
    model = copy.deepcopy(one.model)
    width = model.source.table.weight.shape[1]
    model.encoder.layers = torch.nn.ModuleList(
        [EncoderLayer(width, 8, hidden=32, norm="pre") for _ in range(2)]
    )
    found = translator_numbers("I love you.", Translator(model.eval(), one.vocabularies))
    sizes, parameters = found["sizes"], found["parameters"]
    assert (sizes["encoder_layers"], sizes["encoder_heads"], sizes["encoder_hidden"]) == (2, 8, 32)
    assert sizes["decoder_heads"] == one.model.decoder.layers[0].attention.heads
    assert found["arrays"]["encoder.0.attention_weights"]["shape"][0] == 8
    assert parameters["encoder_feed_forward"] == 2 * 32 * width + 32 + width


def test_a_sentence_that_is_too_long_is_refused():
    with pytest.raises(RegardError, match="at most 24 tokens"):
        translator_numbers("The cat is sleeping on the bed and " * 5 + "the dog is not.")
