"""Pictures: where patches are among the tokens, for every family, and what figures draw over them."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import regard
from regard import figures
from regard.errors import ArgumentError, DtypeError, ModelFileError, RecordingError, ShapeError
from regard.recording import PictureReader, load_picture_reader, load_reader, picture_in_text

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 28,
    "patch_size": 7,
}
FAMILIES = {
    "vit": (transformers.ViTConfig, transformers.ViTModel, {}, 1),
    "deit": (transformers.DeiTConfig, transformers.DeiTModel, {}, 2),
    "dinov2": (transformers.Dinov2Config, transformers.Dinov2Model, {}, 1),
    "registers": (
        transformers.Dinov2WithRegistersConfig,
        transformers.Dinov2WithRegistersModel,
        {"num_register_tokens": 3},
        4,
    ),
    "dinov3": (transformers.DINOv3ViTConfig, transformers.DINOv3ViTModel, {"num_register_tokens": 2}, 3),
    "clip": (transformers.CLIPVisionConfig, transformers.CLIPVisionModel, {}, 1),
    "siglip": (transformers.SiglipVisionConfig, transformers.SiglipVisionModel, {}, 0),
}


def reader_of(family, folder=None):
    config, model, more, _ = FAMILIES[family]
    torch.manual_seed(1)
    built = model(config(**SMALL, **more)).eval()
    processor = transformers.ViTImageProcessorPil(size={"height": 28, "width": 28})
    if folder is not None:
        built.save_pretrained(folder)
        processor.save_pretrained(folder)
    return PictureReader(built, processor, family)


def photo(height=40, width=60):
    return Image.fromarray(np.random.default_rng(2).integers(0, 256, (height, width, 3), np.uint8))


@pytest.mark.parametrize("family", FAMILIES)
def test_patches_are_where_the_model_puts_them(family):
    """Changing the pixels of one patch changes the embedding at its token and at no other."""
    reader = reader_of(family)
    prefix = FAMILIES[family][3]
    seen = reader.read(photo())
    assert seen.picture.grid == (4, 4)
    assert seen.picture.tokens == tuple(range(prefix, prefix + 16))
    assert len(seen.tokens[0]) == seen[0].keys == prefix + 16
    pixels = torch.randn(1, 3, 28, 28)
    changed = pixels.clone()
    changed[..., 7:14, 21:28] += 1.0  # row 1, column 3
    embeddings = []
    for given in (pixels, changed):
        states = {}
        with torch.no_grad(), regard.watch(reader.encoder) as watched:
            reader.encoder(pixel_values=given)
        states["k"] = watched[0].k
        embeddings.append(states["k"])
    moved = (embeddings[0] - embeddings[1]).abs().sum((0, 1, 3)) > 1e-6
    assert torch.nonzero(moved).flatten().tolist() == [seen.picture.tokens[4 + 3]]


def test_folding_is_that_of_the_dense_weights():
    seen = reader_of("deit").read(photo())
    dense = seen[1].weights(1)
    folded = seen.picture.fold(dense)
    assert folded.shape == (18, 4, 4)
    assert torch.equal(folded, dense[:, 2:].reshape(18, 4, 4))
    assert seen.picture.patch_at(2 + 7) == (1, 3)
    assert seen.picture.patch_at(1) is None


def test_the_picture_is_what_the_model_saw():
    given = photo(28, 28)
    seen = reader_of("vit").read(given)
    assert np.abs(seen.picture.image.numpy().astype(int) - np.asarray(given).astype(int)).max() <= 1


def test_files_keep_the_picture(tmp_path):
    seen = reader_of("vit").read(photo())
    seen.save(tmp_path / "seen.safetensors")
    loaded = regard.load(tmp_path / "seen.safetensors")
    assert torch.equal(loaded.picture.image, seen.picture.image)
    assert (loaded.picture.grid, loaded.picture.tokens) == (seen.picture.grid, seen.picture.tokens)


def test_loading(tmp_path):
    reader_of("vit", tmp_path / "vit")
    seen = load_picture_reader(tmp_path / "vit").read(photo())
    assert "4 × 4 patches" in repr(seen.picture)
    with pytest.raises(ModelFileError, match="load_picture_reader"):
        load_reader(tmp_path / "vit")
    (tmp_path / "vit" / "preprocessor_config.json").unlink()
    with pytest.raises(ModelFileError, match=r"preprocessor_config\.json"):
        load_picture_reader(tmp_path / "vit")


def test_text_models_are_refused_by_name(model_folders):
    with pytest.raises(ModelFileError, match="which is a bert"):
        load_picture_reader(model_folders["bert"])


# ---- pictures in a text ------------------------------------------------------------------------


class Config:
    image_token_id = 9


def test_pictures_among_words():
    ids = torch.tensor([[1, 9, 9, 9, 9, 2, *[9] * 9, 3]])
    first = picture_in_text(Config, {"input_ids": ids}, np.zeros((6, 6)))
    second = picture_in_text(Config, {"input_ids": ids}, np.zeros((6, 6)), number=1)
    assert (first.grid, first.tokens) == ((2, 2), (1, 2, 3, 4))
    assert (second.grid, second.tokens) == ((3, 3), tuple(range(6, 15)))
    with pytest.raises(ArgumentError, match="2 of them"):
        picture_in_text(Config, {"input_ids": ids}, np.zeros((6, 6)), number=2)


def test_merged_patches_of_a_picture_that_is_not_square():
    class Qwen:
        image_token_id = 9
        vision_config = type("Vision", (), {"spatial_merge_size": 2})

    ids = torch.tensor([[1, *[9] * 6, 2]])
    inputs = {"input_ids": ids, "image_grid_thw": torch.tensor([[1, 4, 6]])}
    assert picture_in_text(Qwen, inputs, np.zeros((4, 6))).grid == (2, 3)
    with pytest.raises(RecordingError, match="square patch"):
        picture_in_text(Config, {"input_ids": ids}, np.zeros((4, 6)))
    with pytest.raises(RecordingError, match="must name its image token"):
        picture_in_text(object(), inputs, np.zeros((4, 6)))


# ---- pixels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "image",
    [
        np.full((4, 6), 255, np.uint8),
        np.ones((4, 6)),
        np.full((4, 6, 3), 255),
        torch.ones(3, 4, 6),
        np.full((4, 6, 4), 255, np.uint8),
        np.ones((4, 6), bool),
        Image.new("RGB", (6, 4), "white"),
        Image.new("L", (6, 4), 255),
    ],
)
def test_every_way_to_give_a_picture(image):
    found = regard.Picture(image, grid=(2, 3), tokens=slice(0, 6)).image
    assert found.shape == (4, 6, 3)
    assert found.dtype is torch.uint8
    assert bool((found == 255).all())


def test_what_is_refused():
    white = np.ones((4, 4))
    for options, error, says in (
        ({"grid": (2,), "tokens": slice(0, 4)}, ArgumentError, "rows and of columns"),
        ({"grid": (2, 2), "tokens": slice(0, 5)}, ArgumentError, "one position"),
        ({"grid": (2, 2), "tokens": [0, 1, 1, 2]}, ArgumentError, "one position"),
    ):
        with pytest.raises(error, match=says):
            regard.Picture(white, **options)
    for image, error, says in (
        (np.ones((2, 2, 5)), ShapeError, "must have shape"),
        (np.full((2, 2), -1.5), ArgumentError, "normalization"),
        (np.full((2, 2), np.nan), DtypeError, "finite"),
    ):
        with pytest.raises(error, match=says):
            regard.Picture(image, grid=(1, 1), tokens=[0])
    seen = reader_of("siglip").read(photo())
    with pytest.raises(DtypeError, match=r"regard\.Picture"):
        seen.picture = white
    with pytest.raises(ShapeError, match="position 19"):
        seen.picture = regard.Picture(white, grid=(2, 2), tokens=slice(16, 20))
    with pytest.raises(ShapeError, match="every token of the picture"):
        seen.picture.fold(torch.zeros(3))


# ---- figures -----------------------------------------------------------------------------------


def test_the_figure_shows_the_weights_of_a_query():
    seen = reader_of("vit").read(photo())
    figure = figures.picture(seen, layer=1, head=0, query=0, borders=True)
    drawn = figure.axes[0].images[1].get_array()
    wanted = seen.picture.fold(seen[1].weights(0, rows=0))[0]
    assert np.allclose(drawn, wanted, atol=1e-6)
    assert f"{100 * float(wanted.sum()):.0f} %" in figure.alt
    outlined = figures.picture(seen, layer=1, head=0, query=1 + 5).axes[0].patches
    assert [patch.get_xy() for patch in outlined] == [(1, 1)]


def test_the_figure_of_rollout():
    seen = reader_of("vit").read(photo())
    row = regard.heads.rollout(seen).own[0]
    drawn = figures.picture(seen, row, lang="zh").axes[0].images[1].get_array()
    assert np.allclose(drawn, seen.picture.fold(row), atol=1e-6)


def test_figures_that_are_refused():
    seen = reader_of("vit").read(photo())
    with pytest.raises(ArgumentError, match="query must be a position"):
        figures.picture(seen, layer=0, head=0, query=99)
    with pytest.raises(ShapeError, match="one number per token"):
        figures.picture(seen, np.zeros((3, 3)))
    with pytest.raises(ArgumentError, match="finite"):
        figures.picture(seen, np.full((4, 4), np.nan))
    seen.picture = None
    with pytest.raises(RecordingError, match="knows its picture"):
        figures.picture(seen)
    with pytest.raises(DtypeError, match=r"regard\.Picture"):
        figures.picture([1, 2])


def test_the_examples_of_the_docs_run(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "vision.md"
    reader_of("vit", tmp_path)
    names = {"folder": tmp_path, "image": photo(), "model": reader_of("vit").model}
    names["pixels"] = torch.randn(1, 3, 28, 28)
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(code, names)
    assert names["seen"].picture.grid == (4, 4)


@pytest.mark.parametrize("family", ["CLIP", "Siglip"])
def test_models_with_a_second_tower_for_text(family):
    text = {"vocab_size": 20, **{k: v for k, v in SMALL.items() if k not in ("image_size", "patch_size")}}
    config = getattr(transformers, f"{family}Config")(text_config=text, vision_config=SMALL)
    model = getattr(transformers, f"{family}Model")(config).eval()
    processor = transformers.ViTImageProcessorPil(size={"height": 28, "width": 28})
    seen = PictureReader(model, processor, family).read(photo())
    assert seen.picture.grid == (4, 4)
    assert {call.kind for call in seen} == {"encoder"}
