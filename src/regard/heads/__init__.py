"""What heads do: the table of statistics, mass of regions, roles, rollout, norms and differences.

>>> import torch, regard
>>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
>>> with regard.watch(model) as seen:
...     _ = model(torch.randn(1, 5, 16))
>>> regard.heads.table(seen).column("head")
[0, 1]
"""

from regard.heads import survey
from regard.heads.alignment_scores import alignment
from regard.heads.attention_rollout import Rollout, rollout
from regard.heads.cache_eviction import Eviction, eviction
from regard.heads.head_changes import changes
from regard.heads.head_divergence import Divergence, divergence
from regard.heads.head_importance import importance
from regard.heads.head_roles import roles
from regard.heads.head_table import table
from regard.heads.induction_heads import induction, repeated_tokens
from regard.heads.logit_attribution import Attribution, attribution
from regard.heads.monitor_file import read_monitor
from regard.heads.output_means import mean_outputs
from regard.heads.region_mass import mass
from regard.heads.role_results import Example, Head, Roles, Score
from regard.heads.token_alignment import AlignedPair, Alignment, align
from regard.heads.token_relevance import Relevance, relevance
from regard.heads.training_monitor import Monitor, monitor
from regard.heads.value_norms import ValueWeighted, value_weighted
from regard.table import Table

__all__ = [
    "AlignedPair",
    "Alignment",
    "Attribution",
    "Divergence",
    "Eviction",
    "Example",
    "Head",
    "Monitor",
    "Relevance",
    "Roles",
    "Rollout",
    "Score",
    "Table",
    "ValueWeighted",
    "align",
    "alignment",
    "attribution",
    "changes",
    "divergence",
    "eviction",
    "importance",
    "induction",
    "mass",
    "mean_outputs",
    "monitor",
    "read_monitor",
    "relevance",
    "repeated_tokens",
    "roles",
    "rollout",
    "survey",
    "table",
    "value_weighted",
]
