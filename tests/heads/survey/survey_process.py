"""``regard survey`` in several processes under torchrun's agent; one may be told to die after some batches.

python survey_process.py COUNT RANK BATCHES survey CORPUS …

Everything is imported once: the processes are forks of this one, where torchrun would start Python for each.
"""

import os
import signal
import sys

import transformers.models.bert.modeling_bert  # noqa: F401 - before the fork
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

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


def one_process(dying, batches, *arguments):
    if os.environ["RANK"] == dying:
        die_after(int(batches))
    main(arguments, prog_name="regard", standalone_mode=False)


if __name__ == "__main__":
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=int(sys.argv[1]),
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        run_id="survey",
        max_restarts=0,
        start_method="fork",
    )
    elastic_launch(config, one_process)(*sys.argv[2:])
