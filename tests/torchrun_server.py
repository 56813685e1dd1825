"""``regard`` in several processes under torchrun's agent; one may be told to die in the middle of a survey.

python torchrun_server.py MODULE…

Each line of the input is a run, a list in JSON: a file for its output, another for its errors, COUNT, RANK,
BATCHES, and the arguments of regard; the process with this rank dies after so many batches. The answer is its
exit code. Everything is imported once, with the modules that these runs need: each run is a fork of this
process, and its processes are forks of that, where torchrun would start Python for each.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback


@contextlib.contextmanager
def torchrun(folder, *modules):
    """A function that runs regard in several processes: exit code, what was printed, and the errors."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}

    with subprocess.Popen([sys.executable, __file__, *modules], env=environment, **pipes) as server:
        patience = threading.Timer(300, server.kill)
        patience.start()

        def run(name, count, *arguments, dying=-1, after=0):
            out, err = folder / f"{name}.out", folder / f"{name}.err"
            call = [out, err, count, dying, after, *arguments]
            server.stdin.write(json.dumps([str(one) for one in call]) + "\n")
            server.stdin.flush()
            code = int(server.stdout.readline())
            return code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")

        yield run
        patience.cancel()
        server.stdin.close()


def die_after(count):
    from regard.heads.survey.surveyed_model import SurveyedModel

    real, done = SurveyedModel.read, 0

    def read(*arguments):
        nonlocal done
        done += 1
        if done > count:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    SurveyedModel.read = read


def one_process(dying, after, *arguments):
    from regard.app.main import main

    if os.environ["RANK"] == dying:
        die_after(int(after))
    main(arguments, prog_name="regard", standalone_mode=False)


def launch(count, *arguments):
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=int(count),
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        run_id="regard",
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
    for name in ("torch.distributed.launcher.api", "regard.app.main", *sys.argv[1:]):
        importlib.import_module(name)
    from regard.heads.survey import corpus_batches

    corpus_batches.STRETCH_DOCUMENTS = 17  # as in the tests of one process
    for line in sys.stdin:
        print(forked(*json.loads(line)), flush=True)
