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

KNOWN = (
    "[OH:1][C:2](=[O:3])[CH:4]1[CH2:5][CH2:6][O:7][CH2:8][CH2:9]1.[NH2:10][c:11]1[cH:12][cH:13][c:14]([Br:15])[cH:16][n:17]1.CN(C)C=O"
    ">>[C:2](=[O:3])([CH:4]1[CH2:5][CH2:6][O:7][CH2:8][CH2:9]1)[NH:10][c:11]1[cH:12][cH:13][c:14]([Br:15])[cH:16][n:17]1",
    "[SH:1][c:2]1[cH:3][cH:4][c:5]([CH3:6])[cH:7][cH:8]1.[Br:9][CH2:10][C:11](=[O:12])[O:13][CH2:14][CH3:15].[K+].[OH-]"
    ">>[S:1]([c:2]1[cH:3][cH:4][c:5]([CH3:6])[cH:7][cH:8]1)[CH2:10][C:11](=[O:12])[O:13][CH2:14][CH3:15]",
    "[O:1]=[C:2]([Cl:3])[c:4]1[cH:5][cH:6][cH:7][o:8]1.[OH:9][CH2:10][CH2:11][c:12]1[cH:13][cH:14][cH:15][cH:16][cH:17]1.c1ccncc1"
    ">>[O:1]=[C:2]([c:4]1[cH:5][cH:6][cH:7][o:8]1)[O:9][CH2:10][CH2:11][c:12]1[cH:13][cH:14][cH:15][cH:16][cH:17]1",
    "[O:1]=[CH:2][c:3]1[c:4]([Cl:5])[cH:6][cH:7][cH:8][c:9]1[O:10][CH3:11].[BH4-].[Na+].CO"
    ">>[OH:1][CH2:2][c:3]1[c:4]([Cl:5])[cH:6][cH:7][cH:8][c:9]1[O:10][CH3:11]",
    "[Br:1][c:2]1[cH:3][cH:4][c:5]2[n:6][cH:7][cH:8][cH:9][c:10]2[cH:11]1.[NH2:12][CH2:13][CH:14]([CH3:15])[CH3:16].CC(C)(C)[O-].[Na+]"
    ">>[c:2]1([NH:12][CH2:13][CH:14]([CH3:15])[CH3:16])[cH:3][cH:4][c:5]2[n:6][cH:7][cH:8][cH:9][c:10]2[cH:11]1",
    "[I:1][c:2]1[cH:3][c:4]([CH3:5])[cH:6][cH:7][c:8]1[OH:9].[B:10]([OH:11])([OH:12])[c:13]1[cH:14][cH:15][cH:16][c:17]([C:18]#[N:19])[cH:20]1.C1COCCO1"
    ">>[c:2]1(-[c:13]2[cH:14][cH:15][cH:16][c:17]([C:18]#[N:19])[cH:20]2)[cH:3][c:4]([CH3:5])[cH:6][cH:7][c:8]1[OH:9]",
    "[F:1][c:2]1[cH:3][c:4]([C:5]#[N:6])[cH:7][cH:8][n:9]1.[CH3:10][N:11]1[CH2:12][CH2:13][NH:14][CH2:15][CH2:16]1.CCN(C(C)C)C(C)C"
    ">>[c:2]1([N:14]2[CH2:13][CH2:12][N:11]([CH3:10])[CH2:16][CH2:15]2)[cH:3][c:4]([C:5]#[N:6])[cH:7][cH:8][n:9]1",
    "[O:1]=[CH:2][CH:3]1[CH2:4][CH2:5][CH2:6][CH2:7]1.[NH2:8][c:9]1[cH:10][cH:11][c:12]([O:13][CH3:14])[cH:15][cH:16]1.CC(=O)O"
    ">>[CH2:2]([CH:3]1[CH2:4][CH2:5][CH2:6][CH2:7]1)[NH:8][c:9]1[cH:10][cH:11][c:12]([O:13][CH3:14])[cH:15][cH:16]1",
)  # fmt: skip
"""Eight reactions with numbered atoms, made from templates after the score was designed."""

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


def _atoms(tokens: list[str]) -> list[int]:
    """Where the atoms are; bonds, brackets and numbers of rings have no counterpart on the other side."""
    package()
    from rxnmapper.smiles_utils import number_tokens

    return [place for place, atom in enumerate(number_tokens(tokens)) if atom >= 0]


def product_atoms(tokens: list[str]) -> list[int]:
    """The atoms after the arrow."""
    return [place for place in _atoms(tokens) if place > tokens.index(">>")]


def reactant_atoms(tokens: list[str]) -> list[int]:
    """The atoms before the arrow."""
    return [place for place in _atoms(tokens) if place < tokens.index(">>")]


def without_numbers(reaction: str) -> tuple[str, list[set[int]]]:
    """The reaction as the model reads it, and which atoms of the reactants each atom of the product may be.

    There may be several: atoms that the symmetry of a molecule makes equal.
    """
    package()
    from rdkit import Chem
    from rxnmapper.smiles_utils import process_reaction_with_product_maps_atoms

    text, own = process_reaction_with_product_maps_atoms(reaction)
    molecules = Chem.MolFromSmiles(text.split(">>")[0])
    ranks = list(Chem.CanonicalRankAtoms(molecules, breakTies=False))
    return text, [{at for at, rank in enumerate(ranks) if rank == ranks[atom]} for atom in own]
