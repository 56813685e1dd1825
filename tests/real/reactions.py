"""The ALBERT of the package rxnmapper, which reads chemical reactions and maps atoms by one of its heads."""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any

import torch

import regard

REACTIONS = (
    "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
    "C1COCCO1.CC(C)(C)OC(=O)CONC(=O)NCc1cccc2ccccc12.Cl>>O=C(O)CONC(=O)NCc1cccc2ccccc12",
    "C=CCN=C=S.CNCc1ccc(C#N)cc1.NNC(=O)c1cn2c(n1)CCCC2>>C=CCN1C(C2=CN3CCCCC3=N2)=NN=C1N(C)CC1=CC=C(C#N)C=C1",
)
CONFIDENCES = (0.95656199, 0.97044243, 0.91902351)
"""What the package's own tests say of these reactions."""

OTHERS = (
    "CC(=O)O.OCC>>CCOC(C)=O",
    "c1ccccc1Br.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
    "CC(=O)Cl.Nc1ccccc1>>CC(=O)Nc1ccccc1",
    "O=Cc1ccccc1.NCc1ccccc1>>C(=NCc1ccccc1)c1ccccc1",
    "CCBr.Oc1ccc(C#N)cc1.O=C([O-])[O-].[K+].[K+]>>CCOc1ccc(C#N)cc1",
    "COC(=O)c1ccccc1.[Li+].[OH-]>>O=C(O)c1ccccc1",
    "CC(C)(C)OC(=O)NCc1ccccc1.O=C(O)C(F)(F)F>>NCc1ccccc1",
    "O=[N+]([O-])c1ccc(Cl)cc1.C1COCCN1>>O=[N+]([O-])c1ccc(N2CCOCC2)cc1",
)
"""Eight reactions of textbooks that were not looked at while the score was designed."""

LAYER, HEAD = 10, 5
"""The head that the package maps by."""


@cache
def package() -> Path:
    """The folder of the package, which is imported module by module: its front needs pkg_resources."""
    spec = importlib.util.find_spec("rxnmapper")
    assert spec is not None
    assert spec.origin is not None
    bare = types.ModuleType("rxnmapper")
    bare.__path__ = [str(Path(spec.origin).parent)]
    sys.modules["rxnmapper"] = bare
    return Path(spec.origin).parent


def model() -> Any:
    """The model as transformers loads it, with the fused attention that it has by default."""
    from transformers import AlbertModel

    return AlbertModel.from_pretrained(_weights()).eval()


def _weights() -> Path:
    return package() / "models" / "transformers" / "albert_heads_8_uspto_all_1310k"


def tokens_of(reaction: str) -> tuple[str, list[str]]:
    """The reaction as the model was trained to read it, and its tokens."""
    package()
    from rxn.chemutils.reaction_smiles import ReactionFormat, parse_any_reaction_smiles, to_reaction_smiles
    from rxnmapper.smiles_utils import SMI_REGEX_PATTERN, process_reaction

    ordered = process_reaction(parse_any_reaction_smiles(reaction))
    text = to_reaction_smiles(ordered, reaction_format=ReactionFormat.STANDARD_WITH_TILDE)
    return text, ["[CLS]", *re.findall(SMI_REGEX_PATTERN, text), "[SEP]"]


def record(albert: Any, tokens: list[str]) -> regard.recording.Recording:
    """What the model attends to in one reaction."""
    lines = (_weights() / "vocab.txt").read_text(encoding="utf-8").splitlines()
    numbers = {token: number for number, token in enumerate(lines)}
    ids = torch.tensor([[numbers.get(token, numbers["[UNK]"]) for token in tokens]])
    with torch.no_grad(), regard.watch(albert) as seen:
        albert(input_ids=ids, attention_mask=torch.ones_like(ids))
    seen.tokens = tokens
    return seen


def products(tokens: list[str]) -> slice:
    """What comes after the arrow, without the last special token."""
    return slice(tokens.index(">>") + 1, len(tokens) - 1)


def reactants(tokens: list[str]) -> slice:
    """What comes before the arrow, without the first special token."""
    return slice(1, tokens.index(">>"))
