"""Windows and macOS: what only POSIX has is guarded; text files name their encoding."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "regard"

POSIX_MODULES = {"fcntl", "grp", "pwd", "pty", "posix", "resource", "select", "syslog", "termios", "tty"}
POSIX_NAMES = {
    "os": {
        "chown", "ctermid", "fchdir", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid",
        "getgroups", "getloadavg", "getpgid", "getpgrp", "getpriority", "getsid", "getuid", "initgroups",
        "killpg", "lchown", "mkfifo", "mknod", "nice", "openpty", "pathconf", "posix_fadvise",
        "posix_fallocate", "posix_spawn", "pread", "pwrite", "sched_getaffinity", "sched_setaffinity",
        "sched_yield", "sendfile", "setgid", "setpgid", "setpriority", "setsid", "setuid", "sync", "sysconf",
        "tcgetpgrp", "ttyname", "uname", "wait", "wait3", "wait4", "waitid", "WEXITSTATUS", "WIFSIGNALED",
        "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC",
    },
    "signal": {
        "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGPROF", "SIGQUIT",
        "SIGSTOP", "SIGSYS", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2",
        "SIGWINCH", "SIGXCPU", "alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer",
        "sigpending", "sigtimedwait", "sigwait",
    },
}  # fmt: skip
POSIX_PATHS = ("/proc", "/dev/", "/sys/", "/tmp", "/var/", "/etc/", "/usr/")

GUARDED = {
    ("folder_lock.py", "fcntl"): "in a try: Windows has msvcrt instead",
    ("lessons/process_memory.py", "resource"): "in a try: Windows does not say",
    ("lessons/process_memory.py", "sysconf"): "in a try for AttributeError: Windows does not say",
    ("lessons/process_memory.py", "/proc/meminfo"): "in a try for OSError: Linux alone has it",
    ("machine.py", "/proc/cpuinfo"): "in a try for OSError: Linux alone has it",
    ("machine.py", "sched_getaffinity"): "behind hasattr: Linux alone has it",
}
"""Where something of POSIX stands, and what guards it. Nothing else may."""

TEXT_METHODS = {"read_text", "write_text"}
OWN_WRITERS = {"atomic.write_text", "write_text", "read_text", "super().write_text"}
"""regard's own functions of these names, which write and read UTF-8; click's write_text writes no file."""


def posix_uses(nodes):
    """Modules, attributes and paths that only some systems have, each node judged by itself."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in POSIX_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in POSIX_MODULES:
            yield node.module
        elif isinstance(node, ast.ImportFrom) and node.module in POSIX_NAMES:
            yield from (alias.name for alias in node.names if alias.name in POSIX_NAMES[node.module])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in POSIX_NAMES.get(node.value.id, ()):
                yield node.attr
        elif isinstance(node, ast.Constant) and _is_path(node.value):
            yield node.value


def _is_path(value):
    return isinstance(value, str) and value.startswith(POSIX_PATHS) and "\n" not in value


def unguarded(tree):
    """Uses that are not in a try, nor under a question whether there is such a thing."""
    guarded = set()
    for node in ast.walk(tree):
        asks = isinstance(node, ast.If) and any(
            isinstance(one, ast.Name) and one.id == "hasattr" for one in ast.walk(node.test)
        )
        if asks or (isinstance(node, ast.Try) and node.handlers):
            guarded |= {id(inner) for part in node.body for inner in ast.walk(part)}
    open_nodes = [node for node in ast.walk(tree) if id(node) not in guarded]
    return {use for use in posix_uses(open_nodes) if not use.startswith("/")}


def calls_on_files(tree):
    """Calls that may open a file of text: the node, what is called, and the last part of its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            last = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            if last in {*TEXT_METHODS, "open", "fdopen"}:
                yield node, ast.unparse(node.func), last


def encodings_missing(tree):
    """Calls that open a file of text without saying its encoding."""
    for node, written, last in calls_on_files(tree):
        named = {one.arg for one in node.keywords}
        if last in TEXT_METHODS and written not in OWN_WRITERS and "encoding" not in named:
            yield f"line {node.lineno}: {written}"
        if last in ("open", "fdopen") and _opens_text(node, written) and "encoding" not in named:
            yield f"line {node.lineno}: {written}"


def newlines_missing(tree):
    """Calls that write a file of text and leave the ends of its lines to the system."""
    for node, written, last in calls_on_files(tree):
        named = {one.arg for one in node.keywords}
        writes = (
            last in ("open", "fdopen") and _opens_text(node, written) and _mode(node, written)[:1] in "wax"
        )
        if writes and _mode(node, written) and "newline" not in named:
            yield f"line {node.lineno}: {written}"
        if last == "write_text" and written not in OWN_WRITERS and "newline" not in named:
            yield f"line {node.lineno}: {written}"


def _mode(node, written):
    place = 1 if written in ("open", "os.fdopen", "io.open") else 0
    given = [*node.args[place : place + 1], *(one.value for one in node.keywords if one.arg == "mode")]
    return given[0].value if given and isinstance(given[0], ast.Constant) else ""


def _opens_text(node, written):
    others = (
        "Corpus.open",
        "cls.open",
        "self.open",
        "webbrowser.open",
        "os.open",
        "Image.open",
        "zipfile.open",
    )
    return written not in others and "b" not in str(_mode(node, written))


@pytest.fixture(scope="module")
def trees():
    """Every file of the package by its name, parsed once."""
    files = sorted(SOURCE.rglob("*.py"))
    return {
        file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files
    }


def test_what_only_posix_has_is_listed_and_guarded(trees):
    uses = {(name, use) for name, tree in trees.items() for use in posix_uses(ast.walk(tree))}
    assert uses == set(GUARDED)
    assert {name: found for name, _ in uses if (found := unguarded(trees[name]))} == {}


def test_every_file_of_text_is_opened_with_its_encoding_and_line_ends(trees):
    assert [(name, call) for name, tree in trees.items() for call in encodings_missing(tree)] == []
    assert [(name, call) for name, tree in trees.items() for call in newlines_missing(tree)] == []


def test_the_walk_would_notice():
    wrong = ast.parse(
        "import fcntl, os\n"
        "from signal import SIGKILL\n"
        "try:\n    os.getuid()\nexcept AttributeError:\n    pass\n"
        "if hasattr(os, 'fork'):\n    os.fork()\n"
        "os.nice(1)\n"
        "path = '/proc/self'\n"
    )
    assert set(posix_uses(ast.walk(wrong))) == {"fcntl", "SIGKILL", "getuid", "fork", "nice", "/proc/self"}
    assert unguarded(wrong) == {"fcntl", "SIGKILL", "nice"}
    files = ast.parse(
        "open('x')\nopen('x', 'rb')\nPath('x').open('w')\nPath('x').read_text()\n"
        "Path('x').write_text('a', encoding='utf-8')\nopen('x', 'w', encoding='utf-8', newline='')\n"
        "os.fdopen(3, 'w', encoding='utf-8')\n"
    )
    assert [one.split(":")[0] for one in encodings_missing(files)] == ["line 1", "line 3", "line 4"]
    assert [one.split(":")[0] for one in newlines_missing(files)] == ["line 3", "line 5", "line 7"]


def test_names_of_the_list_are_real():
    import os
    import signal

    for module, names in ((os, POSIX_NAMES["os"]), (signal, POSIX_NAMES["signal"])):
        unknown = {name for name in names if not hasattr(module, name)}
        # Every one of them exists on Linux; on a system without them they are missing, which is the point.
        assert os.name != "posix" or not unknown or "linux" not in os.sys.platform, unknown
