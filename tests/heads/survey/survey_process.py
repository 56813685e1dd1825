"""``regard survey`` in several processes under torchrun's agent; one may be told to die after some batches.

Each line of the input is a run, a list in JSON: a file for its output, another for its errors, COUNT, RANK,
BATCHES, survey, CORPUS … The answer is its exit code. Everything is imported once: each run is a fork of this
process, and its processes are forks of that, where torchrun would start Python for each.
"""

import json
import os
import signal
import sys
import traceback

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


def launch(count, *arguments):
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=int(count),
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        run_id="survey",
        max_restarts=0,
        start_method="fork",
    )
    elastic_launch(config, one_process)(*arguments)


def forked(out, err, *arguments):
    child = os.fork()
    if not child:
        code = 1
        try:
            for number, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
            launch(*arguments)
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the test must see it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    for line in sys.stdin:
        print(forked(*json.loads(line)), flush=True)
