"""Old names of arguments and classes: they work, and they warn."""

import pytest
import torch

import regard
from regard import nn
from regard.deprecation import renamed_arguments

MODEL = nn.LanguageModel(11, width=8, heads=2, layers=1)
PROMPT = torch.tensor([[3, 4, 5]])


def test_generate_takes_the_old_names():
    new = nn.generate(MODEL, PROMPT, max_new_tokens=4, num_beams=2, eos_token_id=7)
    with pytest.warns(DeprecationWarning, match=r"generate\((maximum|beams|end)=\) is now generate\("):
        old = nn.generate(MODEL, PROMPT, maximum=4, beams=2, end=7)
    assert torch.equal(old.tokens, new.tokens)


@pytest.mark.parametrize("function", [regard.page, regard.show])
def test_pages_take_the_old_name(function, tmp_path):
    with regard.watch(MODEL) as seen:
        MODEL(PROMPT)
    target = [tmp_path / "x.html"] if function is regard.page else []
    with pytest.warns(DeprecationWarning, match=r"\(yes=\) is now .*\(force=\)"):
        function(seen, *target, yes=True)


def test_both_names_at_once_are_an_error():
    @renamed_arguments(old="new")
    def twice(*, new):
        return 2 * new

    assert twice(new=2) == 4
    with pytest.raises(TypeError, match=r"twice\(old=\) is now twice\(new=\); pass only the new one"):
        twice(new=1, old=1)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (regard.heads.survey, "State", "SurveyProgress"),
        (regard.translator, "Corpus", "CorpusSplit"),
        (regard.translator, "Report", "TrainingProgress"),
    ],
)
def test_modules_know_the_old_names_of_classes(module, old, new):
    with pytest.warns(DeprecationWarning, match=rf"{module.__name__}\.{old} is now {new};"):
        assert getattr(module, old) is getattr(module, new)
    assert not hasattr(module, "NoSuchName")
