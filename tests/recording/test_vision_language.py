"""Vision-language models, small and random: the patches are the image tokens of the text."""

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers

import regard
from regard.errors import ArgumentError, ModelFileError, RecordingError, TextError
from regard.recording import VisionLanguageReader, load_picture_reader, picture_in_text

# PaliGemma's processor makes an array of a tensor.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

VISION = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
TEXT = {**VISION, "num_hidden_layers": 2, "num_key_value_heads": 1, "vocab_size": 1300, "head_dim": 16}
TEMPLATE = (
    "<s>{% for part in messages[0]['content'] %}{% if part['type'] == 'image' %}<image>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %} assistant :"
)


def tokenizer_with(*special):
    words = ["<unk>", "<s>", "</s>", "What", "is", "this", "?", "assistant", ":", *special]
    found = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, "<unk>"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=found, **ends, additional_special_tokens=list(special)
    )


def llava(**processing):
    tokenizer = tokenizer_with("<image>")
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION, image_size=28, patch_size=7),
        text_config=transformers.LlamaConfig(**TEXT),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    pixels = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    processor = transformers.LlavaProcessor(
        pixels, tokenizer, patch_size=7, num_additional_image_tokens=1,
        vision_feature_select_strategy="default", **processing,
    )  # fmt: skip
    return transformers.LlavaForConditionalGeneration(config), processor


def idefics3():
    marks = ("<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
    tokenizer = tokenizer_with("<image>", *marks)
    config = transformers.Idefics3Config(
        vision_config={**VISION, "image_size": 32, "patch_size": 4},
        text_config=transformers.LlamaConfig(**TEXT),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    # By default it would cut the picture into four tiles, and add the whole.
    pixels = transformers.Idefics3ImageProcessorPil(
        size={"longest_edge": 64}, max_image_size={"longest_edge": 32}
    )
    processor = transformers.Idefics3Processor(pixels, tokenizer, image_seq_len=16)
    return transformers.Idefics3ForConditionalGeneration(config), processor


def paligemma():
    pixels = transformers.SiglipImageProcessorPil(size={"height": 28, "width": 28})
    pixels.image_seq_length = 16
    processor = transformers.PaliGemmaProcessor(pixels, tokenizer_with("<image>"))
    config = transformers.PaliGemmaConfig(
        vision_config={**VISION, "model_type": "siglip_vision_model", "image_size": 28, "patch_size": 7},
        text_config={**TEXT, "model_type": "gemma"},
        image_token_id=processor.image_token_id,
        projection_dim=32,
    )
    return transformers.PaliGemmaForConditionalGeneration(config), processor


class PicturesOnly(transformers.Qwen2VLProcessor):
    """The processor of Qwen2-VL without that of videos, which needs torchvision."""

    def __init__(self, image_processor=None, tokenizer=None, chat_template=None):
        self.image_token, self.video_token = "<|image_pad|>", "<|video_pad|>"
        self.image_token_id, self.video_token_id = map(
            tokenizer.convert_tokens_to_ids, (self.image_token, self.video_token)
        )
        transformers.ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


def qwen2_vl():
    marks = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")
    tokenizer = tokenizer_with(*marks)
    image, video, start, end = map(tokenizer.convert_tokens_to_ids, marks)
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
    config = transformers.Qwen2VLConfig(
        vision_config={"depth": 1, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 1,
                       "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2},
        text_config={**TEXT, "rope_parameters": rope},
        image_token_id=image, video_token_id=video, vision_start_token_id=start, vision_end_token_id=end,
    )  # fmt: skip
    pixels = transformers.Qwen2VLImageProcessorPil(
        patch_size=4, size={"shortest_edge": 64, "longest_edge": 1024}
    )
    return transformers.Qwen2VLForConditionalGeneration(config), PicturesOnly(pixels, tokenizer)


FAMILIES = {
    "llava": (llava, (4, 4)),
    "idefics3": (idefics3, (4, 4)),
    "paligemma": (paligemma, (4, 4)),
    "qwen2_vl": (qwen2_vl, (3, 4)),  # 24 × 32 pixels, 2 × 2 patches of 4 × 4 merged
}


def photo(height=40, width=60):
    return Image.fromarray(np.random.default_rng(2).integers(0, 256, (height, width, 3), np.uint8))


def saved(family, folder):
    torch.manual_seed(1)
    model, processor = FAMILIES[family][0]()
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return model, processor


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def reader(family, tmp_path_factory):
    folder = tmp_path_factory.mktemp(family)
    model, processor = saved(family, folder)
    if family == "qwen2_vl":
        return VisionLanguageReader(model, processor, family)
    return load_picture_reader(folder)


def test_patches_are_the_image_tokens(reader, family):
    seen = reader.read(photo(), "What is this ?", next_tokens=True)
    ids = reader.inputs(photo(), "What is this ?")["input_ids"][0]
    image = reader.model.config.image_token_id
    assert seen.picture.grid == FAMILIES[family][1]
    assert list(seen.picture.tokens) == torch.nonzero(ids == image).flatten().tolist()
    assert seen.tokens[0][seen.picture.tokens[-1]] == "{},{}".format(*(n - 1 for n in seen.picture.grid))
    assert seen.tokens[0][-4:] == ["What", "is", "this", "?"]
    assert len(seen) == 2
    assert len(seen.next_tokens) == seen[0].keys == len(ids)


def test_weights_are_those_of_the_dense_way(reader):
    seen = reader.read(photo(), "What is this ?")
    reader.model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            dense = reader.model(
                **reader.inputs(photo(), "What is this ?"), output_attentions=True
            ).attentions
    finally:
        reader.model.set_attn_implementation("sdpa")
    for call, weights in zip(seen, dense, strict=True):
        for head in range(2):
            places = list(seen.picture.tokens)
            wanted = weights[0, head][:, places].unflatten(-1, seen.picture.grid)
            torch.testing.assert_close(seen.picture.fold(call.weights(head)), wanted, atol=1e-6, rtol=1e-4)


def test_a_patch_changes_its_token(reader, family):
    """Changing the pixels in the place of one token changes the picture shown there, and nowhere else."""
    rows, columns = FAMILIES[family][1]
    shown = reader.read(photo(), "What").picture.image
    height, width = shown.shape[0] // rows, shown.shape[1] // columns
    image = Image.fromarray(shown.numpy())
    changed = shown.clone()
    changed[height : 2 * height, 2 * width : 3 * width] = 255
    found = []
    for given in (image, Image.fromarray(changed.numpy())):
        seen = {}
        inputs = reader.inputs(given, "What")

        def keep(_module, _args, kwargs, seen=seen):
            seen["embeddings"] = kwargs["inputs_embeds"]

        hook = reader.model.get_decoder().register_forward_pre_hook(keep, with_kwargs=True)
        with torch.no_grad():
            reader.model(**inputs)
        hook.remove()
        found.append(seen["embeddings"])
    picture = picture_in_text(reader.model.config, inputs, image)
    # The encoder mixes patches, but a patch's own token changes most.
    moved = (found[0] - found[1]).abs().sum((0, 2))
    assert int(moved.argmax()) == picture.tokens[columns + 2]


def test_the_prompt():
    model, processor = llava(chat_template=TEMPLATE)
    asked = VisionLanguageReader(model.eval(), processor, "llava")
    assert asked.read(photo(), "What is this ?").tokens[0][-6:] == [
        "What",
        "is",
        "this",
        "?",
        "assistant",
        ":",
    ]
    ids = asked.inputs(photo(), "What")["input_ids"][0].tolist()
    assert ids.count(processor.tokenizer.bos_token_id) == 1
    own = asked.read(photo(), "What <image> is")
    assert (own.tokens[0][0], own.tokens[0][-1], own.picture.tokens[0]) == ("What", "is", 1)
    assert asked.read(photo()).picture.grid == (4, 4)
    with pytest.raises(TextError, match="at least one word"):
        asked.read(photo(), " ")
    with pytest.raises(ArgumentError, match="2 times <image>"):
        asked.read(photo(), "<image> <image> What")
    sizes = VisionLanguageReader(*qwen2_vl(), "qwen2_vl")
    with pytest.raises(ArgumentError, match=r"must accept the picture.*aspect ratio"):
        sizes.inputs(photo(2, 600))


def test_what_cannot_be_read(tmp_path):
    model, processor = idefics3()
    reader = VisionLanguageReader(model.eval(), processor, "idefics3")
    tiles = {"pixel_values": torch.zeros(1, 5, 3, 32, 32)}
    with pytest.raises(RecordingError, match="5 tiles"):
        reader._shown(photo(), tiles)
    image = [model.config.image_token_id] * 4
    inputs = {"input_ids": torch.tensor([[*image, 3, *image]])}
    first = picture_in_text(model.config, inputs, photo())
    with pytest.raises(RecordingError, match="a grid of 2 × 2"):
        reader._check_whole(first, inputs)
    config = transformers.Idefics2Config()
    config.save_pretrained(tmp_path)
    with pytest.raises(ModelFileError, match="tokens of the decoder's text"):
        load_picture_reader(tmp_path)


def test_a_processor_of_both_is_needed(tmp_path):
    saved("qwen2_vl", tmp_path)  # its class is not one that transformers knows
    with pytest.raises(ModelFileError, match="no processor of both"):
        load_picture_reader(tmp_path)


def test_a_grid_of_the_shape_of_the_pixels():
    class Config:
        image_token_id = 9

    inputs = {"input_ids": torch.tensor([[1, *[9] * 16]]), "pixel_values": torch.zeros(1, 3, 14, 56)}
    assert picture_in_text(Config, inputs, photo()).grid == (2, 8)
    inputs["pixel_values"] = torch.zeros(1, 3, 14, 28)
    with pytest.raises(RecordingError, match="square patch"):
        picture_in_text(Config, inputs, photo())


def test_it_is_kept_in_files(tmp_path):
    seen = VisionLanguageReader(*llava(), "llava").read(photo(), "What is this ?")
    seen.save(tmp_path / "seen.safetensors")
    loaded = regard.load(tmp_path / "seen.safetensors")
    assert (loaded.picture.tokens, loaded.tokens) == (seen.picture.tokens, seen.tokens)
