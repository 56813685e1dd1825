"""Modules: multi-head attention, positions, layers, encoder, decoder, transformer, generation.

>>> import torch
>>> from regard import nn
>>> model = nn.Transformer(16, 4, encoder_layers=2, decoder_layers=2)
>>> keep = torch.arange(9) < torch.tensor([[9], [7]])  # False at padding
>>> model(torch.randn(2, 9, 16), torch.randn(2, 5, 16), source_keep=keep).shape
torch.Size([2, 5, 16])
"""

from regard.nn.cache import Cache, KeyValueCache, LinearCache
from regard.nn.dropout import Dropout
from regard.nn.embedding import TokenEmbedding
from regard.nn.generation import Generated, generate
from regard.nn.layers import DecoderLayer, EncoderLayer, FeedForward
from regard.nn.linear_attention import LinearAttention
from regard.nn.models import Encoded, LanguageModel, Seq2Seq
from regard.nn.multi_head import MultiHeadAttention, RelativePositionAttention
from regard.nn.positions import LearnedPositions, RotaryPositions, SinusoidalPositions
from regard.nn.stacks import Decoder, Encoder, Transformer
from regard.nn.torch_modules import from_torch

__all__ = [
    "Cache",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoded",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Generated",
    "KeyValueCache",
    "LanguageModel",
    "LearnedPositions",
    "LinearAttention",
    "LinearCache",
    "MultiHeadAttention",
    "RelativePositionAttention",
    "RotaryPositions",
    "Seq2Seq",
    "SinusoidalPositions",
    "TokenEmbedding",
    "Transformer",
    "from_torch",
    "generate",
]
