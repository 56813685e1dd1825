"""In which language the server says no."""

import re

import pytest

from app.served import client, finished, served
from regard.app.server.jobs import Jobs
from regard.app.server.limits import Limits
from regard.app.server.refused import wanted_language
from regard.errors import TextError

CHINESE = {"accept-language": "zh-Hans"}
WORDS = re.compile(r"[A-Za-z]{2,}")
NAMES = re.compile(
    r"\b(JSON|UTF|POST|maps|application/json|words?|max|mean|tiles?|row|level|kind|show|model|text)\b|'.*?'"
)


@pytest.fixture(scope="module")
def http():
    with client(served()) as found:
        yield found


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (None, "en"),
        ("zh", "zh"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB, zh;q=0.5", "en"),
        ("fr, ZH-tw;q=0.1", "zh"),
        ("de", "en"),
        ("", "en"),
        ("*", "en"),
        ("zhuang, x-zh", "en"),
    ],
)
def test_which_language_is_wanted(header, wanted):
    assert wanted_language({} if header is None else {"accept-language": header}) == wanted


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nowhere", 404),
        ("/api/recordings/none", 404),
        ("/api/jobs/none", 404),
        ("/assets/none.js", 404),
        ("/api/recordings/book/tiles/9/0/0/0/0", 404),
        ("/api/recordings/book/tiles/0/0/3/0/0", 409),
        ("/api/recordings/book/margins/0/0", 409),
        ("/api/recordings/book/tiles/0/0/7/0/0", 422),
        ("/api/recordings/book/tiles/0/0/0/-1/0", 422),
        ("/api/recordings/book/tiles/0/0/0/0/0?kind=least", 422),
    ],
)
def test_refusals_in_both_languages(http, path, status):
    english, chinese = http.get(path), http.get(path, headers=CHINESE)
    assert english.status_code == chinese.status_code == status
    assert WORDS.search(english.json()["error"])
    assert not WORDS.search(NAMES.sub("", chinese.json()["error"])), chinese.json()["error"]
    numbers = [re.findall(r"\d+", answer.json()["error"]) for answer in (english, chinese)]
    assert sorted(numbers[0]) == sorted(numbers[1])


@pytest.mark.parametrize("body", [{"model": "words"}, [], {"model": "none", "text": "a"}, {"path": 1}])
def test_readings_that_are_refused_in_chinese(http, body):
    said = http.post("/api/readings", json=body, headers=CHINESE).json()["error"]
    assert not WORDS.search(NAMES.sub("", said).replace("generate", "").replace("pair", "")), said


def test_the_guard_speaks_too(http):
    answer = http.get("/", headers={**CHINESE, "host": "elsewhere.example"})
    assert (answer.status_code, answer.json()["error"]) == (
        421,
        "这台服务器不叫这个名字。请使用它打印出来的地址。",
    )
    answer = http.post("/api/readings", json={}, headers={**CHINESE, "origin": "https://elsewhere.example"})
    assert answer.json()["error"].startswith("其他网站的网页不可以这样做。")


def test_a_job_that_fails_says_so_in_the_language_of_whoever_asks():
    def refuses(tell):
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


def test_a_job_over_http_in_chinese(http):
    job = http.post("/api/readings", json={"model": "words", "text": "a b c"}, headers=CHINESE).json()["job"]
    assert finished(http, job)["error"] is None
    assert http.delete("/api/jobs/none", headers=CHINESE).json()["error"] == "已经没有这项任务。请重新开始。"
