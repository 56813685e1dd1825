"""``regard survey`` in one of several processes, of which one may be told to die after some batches.

torchrun … survey_process.py RANK BATCHES survey CORPUS …
"""

import os
import signal
import sys

from regard.app.main import main
from regard.heads.survey import corpus_batches
from regard.heads.survey.surveyed_model import SurveyedModel

corpus_batches.STRETCH_DOCUMENTS = 17  # as in the tests of one process


def die_after(count):
    real, done = SurveyedModel.read, 0

    def read(*arguments):
        nonlocal done
        done += 1
        if done > count:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    SurveyedModel.read = read


if __name__ == "__main__":
    if os.environ["RANK"] == sys.argv[1]:
        die_after(int(sys.argv[2]))
    main(sys.argv[3:], prog_name="regard")
