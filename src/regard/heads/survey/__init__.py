"""The survey: what every head of a model does over a corpus, with exact resume, on one process or many."""

from regard.heads.survey.corpus import Corpus
from regard.heads.survey.survey_results import Survey
from regard.heads.survey.survey_run import State, survey

__all__ = ["Corpus", "State", "Survey", "survey"]
