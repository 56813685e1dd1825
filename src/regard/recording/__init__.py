"""Recording: what every head of a model looked at, as Q, K and lse, without the matrix.

>>> import torch, regard
>>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
>>> with regard.watch(model) as seen:
...     _ = model(torch.randn(1, 5, 16))
>>> seen[0].weights(head=0, rows=slice(0, 2)).shape
torch.Size([2, 5])
"""

from regard.recording.call import Call
from regard.recording.dense_call import DenseCall
from regard.recording.memory_estimate import Estimate, estimate
from regard.recording.picture import Picture
from regard.recording.picture_reader import PictureReader, load_picture_reader
from regard.recording.reader import Reader, load_reader
from regard.recording.recording import Recording
from regard.recording.recording_file import load
from regard.recording.scored_call import ScoredCall
from regard.recording.summary_call import SummaryCall
from regard.recording.vision_language_reader import VisionLanguageReader, picture_in_text
from regard.recording.watcher import watch

__all__ = [
    "Call",
    "DenseCall",
    "Estimate",
    "Picture",
    "PictureReader",
    "Reader",
    "Recording",
    "ScoredCall",
    "SummaryCall",
    "VisionLanguageReader",
    "estimate",
    "load",
    "load_picture_reader",
    "load_reader",
    "picture_in_text",
    "watch",
]
