"""In which language the server says no."""

import re

import pytest

from app.served import finished
from regard.app.server.jobs import Jobs
from regard.app.server.limits import Limits
from regard.app.server.request_errors import wanted_language
from regard.errors import TextError

CHINESE = {"accept-language": "zh-CN"}
WORDS = re.compile(r"[A-Za-z]{2,}")
NAMES = re.compile(
    r"\b(JSON|UTF|POST|maps|application/json|words?|max|mean|tiles?|row|level|kind|show|model|text"
    r"|generate|pair|picture)\b|'.*?'"
)


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("zh", "zh"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB, zh;q=0.5", "en"),
        ("fr, ZH-tw;q=0.1", "zh"),
        ("*", "en"),
        ("zhuang, x-zh", "en"),
    ],
)
def test_which_language_is_wanted(header, wanted):
    assert wanted_language({"accept-language": header}) == wanted
    assert wanted_language({}) == "en"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/nowhere", None, 404),
        ("/api/recordings/none", None, 404),
        ("/api/jobs/none", None, 404),
        ("/api/recordings/book/tiles/0/0/3/0/0", None, 409),
        ("/api/recordings/book/margins/0/0", None, 409),
        ("/api/recordings/book/tiles/0/0/7/0/0", None, 422),
        ("/api/recordings/book/tiles/0/0/0/0/0?kind=least", None, 422),
        ("/api/readings", {"model": "words"}, 422),
        ("/api/readings", [], 422),
        ("/api/readings", {"model": "none", "text": "a"}, 422),
        ("/api/readings", {"path": 1}, 422),
    ],
)
def test_refusals_in_both_languages(http, path, body, status):
    ask = http.get if body is None else lambda *arguments, **rest: http.post(*arguments, json=body, **rest)
    english, chinese = ask(path), ask(path, headers=CHINESE)
    assert english.status_code == chinese.status_code == status
    assert WORDS.search(english.json()["error"])
    assert not WORDS.search(NAMES.sub("", chinese.json()["error"])), chinese.json()["error"]
    numbers = [sorted(re.findall(r"\d+", answer.json()["error"])) for answer in (english, chinese)]
    assert numbers[0] == numbers[1]


def test_the_guard_speaks_too(http):
    answer = http.get("/", headers={**CHINESE, "host": "elsewhere.example"})
    assert (answer.status_code, answer.json()["error"]) == (
        421,
        "这台服务器不叫这个名字。请使用它打印出来的地址。",
    )


def test_a_job_that_fails_says_so_in_the_language_of_whoever_asks(http):
    def refuses(report):
        raise TextError("A text must have at least one word.", got="none", do="Shorten it.")

    queue = Jobs(Limits())
    job = queue.submit("reading", refuses)
    while not job.over:
        pass
    queue.close()
    assert job.described()["error"] == "A text must have at least one word. Got none. Shorten it."
    assert job.described("zh")["error"].startswith("文本至少要有一个词。")
    assert job.error.__traceback__ is None  # it would keep alive what the work held
    assert job.error.__context__ is None
    job = http.post("/api/readings", json={"model": "words", "text": "a b c"}, headers=CHINESE).json()["job"]
    assert finished(http, job)["error"] is None
    assert http.delete("/api/jobs/none", headers=CHINESE).json()["error"] == "已经没有这项任务。请重新开始。"
