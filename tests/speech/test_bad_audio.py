"""Bad input: audio, models, processors, heads and options, each with an error that says what to do."""

import builtins

import numpy as np
import pytest
import soundfile
import torch
from transformers import BertConfig, BertModel

import small_models
from regard import errors, speech
from regard.speech.audio_input import resampled
from speech import small_whisper
from speech.small_whisper import noise


@pytest.fixture(scope="module")
def parts():
    return small_whisper.model(), small_whisper.processor()


@pytest.mark.parametrize("shape", [(800, 2), (2, 800), (1, 2, 800)])
def test_stereo(parts, shape):
    with pytest.raises(
        errors.ShapeError, match=r"one channel.* Got shape \(.* Average the channels of stereo"
    ):
        speech.words(*parts, np.zeros(shape))


def test_a_wrong_rate(parts):
    with pytest.raises(errors.ArgumentError, match=r"rate = 16000\). Got rate = 44100. Convert it"):
        speech.words(*parts, noise(0.5), rate=44_100)


@pytest.mark.parametrize("audio", [np.zeros(0), [], torch.zeros(0), [noise(0.2), np.zeros(0)]])
def test_empty_audio(parts, audio):
    with pytest.raises(errors.ShapeError, match=r"at least one sample. Got empty audio"):
        speech.words(*parts, audio)


def test_samples_that_are_not_finite(parts):
    with pytest.raises(errors.DtypeError, match=r"finite numbers. Got NaN or infinity"):
        speech.words(*parts, np.array([0.1, np.nan]))


def test_something_that_is_not_audio(parts):
    with pytest.raises(
        errors.DtypeError, match=r"must be samples, the path of a file, or a list of these. Got object"
    ):
        speech.words(*parts, object())


@pytest.mark.parametrize("dtype", [bool, complex, np.uint8])
def test_numbers_that_are_not_samples(parts, dtype):
    with pytest.raises(errors.DtypeError, match=r"Audio must be samples.* Got numbers of dtype"):
        speech.words(*parts, np.zeros(100, dtype))


def test_whole_numbers_stored_as_floats(parts):
    with pytest.raises(errors.ArgumentError, match=r"between −1 and 1. Got values up to [0-9]{5}"):
        speech.words(*parts, np.round(32767 * noise(0.2) / 2))


def test_a_file_that_does_not_exist(parts, tmp_path):
    with pytest.raises(errors.DataError, match=r"must exist. Got .*nothing.wav. Check the path"):
        speech.words(*parts, tmp_path / "nothing.wav")


def test_one_sample_is_enough(parts):
    assert isinstance(speech.words(*parts, np.array([0.1])), list)


def test_a_model_without_cross_attention(parts):
    encoder = BertModel(BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    with pytest.raises(
        errors.ArgumentError, match=r"Got BertModel, which has no cross-attention. Use a Whisper model"
    ):
        speech.words(encoder, parts[1], noise(0.2))


def test_an_encoder_decoder_that_does_not_hear(parts, tmp_path):
    from transformers import BartForConditionalGeneration

    bart = BartForConditionalGeneration.from_pretrained(small_models.save_small_models(tmp_path)["bart"])
    with pytest.raises(errors.ArgumentError, match=r"need a Whisper model that generates text. Got BartFor"):
        speech.words(bart, parts[1], noise(0.2))


def test_a_processor_that_is_a_tokenizer(parts):
    with pytest.raises(
        errors.ArgumentError, match=r"a feature extractor and a tokenizer. Got WhisperTokenizer"
    ):
        speech.words(parts[0], parts[1].tokenizer, noise(0.2))


@pytest.mark.parametrize("heads", [[(3, 0)], [(0, 2)], [(-1, 0)], [(1.5, 0)], [], [5], "all"])
def test_heads_that_the_model_does_not_have(parts, heads):
    with pytest.raises(errors.ArgumentError, match=r"a layer \(0 … 2\) and a head \(0 … 1\) of the decoder"):
        speech.words(*parts, noise(0.2), heads=heads)


def test_heads_in_the_configuration_that_the_model_does_not_have(parts):
    model = small_whisper.model(alignment_heads=[[7, 0]])
    with pytest.raises(
        errors.ArgumentError, match=r"Got \[\[7, 0\]\]. Choose among these, or pass heads=\"find\""
    ):
        speech.words(model, parts[1], noise(0.2))


@pytest.mark.parametrize("median", [0, 4])
def test_an_even_filter(parts, median):
    with pytest.raises(errors.RegardError, match="median"):
        speech.words(*parts, noise(0.2), median=median)


def test_options_that_are_set_here(parts):
    with pytest.raises(errors.ArgumentError, match=r"output_attentions is set by regard.speech"):
        speech.words(*parts, noise(0.2), output_attentions=True)


def test_several_temperatures(parts):
    with pytest.raises(errors.ArgumentError, match=r"one number: .* Got temperature = \(0.0, 0.4\)"):
        speech.words(*parts, noise(0.2), temperature=(0.0, 0.4))


def test_a_model_that_generates_again(parts, monkeypatch):
    model, processor = parts
    generate = model.generate

    def twice(features, **options):
        output = generate(features, **options)
        generate(features[:1], **{**options, "attention_mask": options["attention_mask"][:1]})
        return output

    monkeypatch.setattr(model, "generate", twice)
    with pytest.raises(errors.RecordingError, match=r"one pass of generate\(\) .* \(windows = 2\)"):
        speech.words(model, processor, [noise(0.4), noise(0.3, 2)])


def test_long_audio_without_times(parts):
    model = small_whisper.model(no_timestamps_token_id=None)
    with pytest.raises(
        errors.ArgumentError, match=r"longer than one window \(1 s\) needs a model that writes times"
    ):
        speech.words(model, parts[1], noise(1.5))


# ---- files -----------------------------------------------------------------------------------


def test_a_file_is_averaged_and_converted(tmp_path):
    time = np.arange(44_100) / 44_100
    tone = 0.5 * np.sin(2 * np.pi * 330 * time)
    soundfile.write(tmp_path / "stereo.wav", np.stack([2 * tone, np.zeros_like(tone)], 1) * 0.9, 44_100)
    found = speech.load_audio(tmp_path / "stereo.wav")
    assert found.shape == (16_000,)
    wanted = 0.45 * np.sin(2 * np.pi * 330 * np.arange(16_000) / 16_000)
    assert np.abs(found - wanted)[200:-200].max() < 2e-3


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_101, 48_000])
def test_rates(rate):
    """Only tones that both rates have are kept, at their size and in their place."""
    seconds = 0.7
    before, after = np.arange(round(rate * seconds)) / rate, np.arange(round(16_000 * seconds)) / 16_000
    tones = [(200, 0.3), (1500, 0.2), (3600, 0.1)]
    found = resampled(
        sum(a * np.sin(2 * np.pi * f * before) for f, a in tones).astype(np.float32), rate, 16_000
    )
    wanted = sum(a * np.sin(2 * np.pi * f * after) for f, a in tones)
    assert abs(len(found) - len(after)) <= 1
    middle = slice(1500, len(after) - 1500)
    assert np.abs(found[: len(after)] - wanted)[middle].max() < 5e-3


def test_a_path_is_read(parts, tmp_path):
    soundfile.write(tmp_path / "talk.wav", noise(0.6), 16_000, subtype="FLOAT")
    assert speech.words(*parts, tmp_path / "talk.wav") == speech.words(*parts, noise(0.6))
    assert len(speech.words(*parts, [str(tmp_path / "talk.wav"), noise(0.6)])) == 2


def test_a_file_that_is_not_audio(tmp_path):
    (tmp_path / "talk.wav").write_text("hello", encoding="utf-8")
    with pytest.raises(errors.DataError, match=r"must hold audio that can be read. Got .*talk.wav"):
        speech.load_audio(tmp_path / "talk.wav")


def test_without_soundfile(tmp_path, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest, **more):
        if name == "soundfile":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(
        errors.PackageError, match=r"needs the package soundfile. Install it: pip install 'regard\[speech\]'"
    ):
        speech.load_audio(tmp_path / "talk.wav")


def test_a_folder_without_whisper(tmp_path):
    folder = small_models.save_small_models(tmp_path)["bert"]
    with pytest.raises(errors.ModelFileError, match="a folder with a Whisper model and its processor"):
        speech.load_speech_model(folder)


def test_a_folder_with_whisper(parts, tmp_path):
    model, processor = parts
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    again = speech.load_speech_model(tmp_path)
    here, there = (speech.words(*both, noise(0.5)) for both in (parts, again))
    assert [word[:3] for word in here] == [word[:3] for word in there]
