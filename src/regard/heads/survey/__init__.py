"""The survey: what every head of a model does over a corpus, with exact resume, on one process or many."""

from regard.deprecation import renamed_names as _renamed_names
from regard.heads.survey.corpus import Corpus
from regard.heads.survey.survey_results import Survey
from regard.heads.survey.survey_run import SurveyProgress, survey

__all__ = ["Corpus", "Survey", "SurveyProgress", "survey"]

__getattr__ = _renamed_names(__name__, State="SurveyProgress")
