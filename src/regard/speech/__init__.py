"""Speech: when each word was spoken, from the cross-attention of a watched ``generate()``.

``words()`` gives the words of a recording with their times; ``transcribe()`` also keeps what the page of
``regard look talk.wav`` shows.
"""

from regard.speech.audio_input import load_audio
from regard.speech.speech_model import load_speech_model
from regard.speech.transcript import SpokenWord, Transcript
from regard.speech.transcription import transcribe, words

__all__ = ["SpokenWord", "Transcript", "load_audio", "load_speech_model", "transcribe", "words"]
