"""``regard.doctor()`` and ``regard doctor``: every point found or said, and nothing raises."""

import functools
import json
import os
import sys
from importlib import metadata

import pytest
from click.testing import CliRunner

import regard
from regard import diagnosis, machine
from regard.app.main import main
from regard.diagnosis import Check, Diagnosis, examination, kernel_checks, package_checks, system_checks
from regard.diagnosis.finding import TEXTS
from regard.kernels import compiled_pass

NAMES = [
    "regard", "python", "torch", "packages", "extra.hf", "extra.train", "extra.serve", "extra.survey",
    "extra.speech", "cpu", "half_precision", "threads", "gpu", "kernel", "row_pass", "caches", "browser",
    "output", "speed",
]  # fmt: skip


ERROR_ONCE = functools.cache(kernel_checks.error)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No child and no benchmark: both are tried by themselves. The kernels are compared once."""
    monkeypatch.setattr(kernel_checks, "error", ERROR_ONCE)
    monkeypatch.setattr(machine, "half_precision", lambda again: machine.HalfPrecision("works"))
    monkeypatch.setattr(kernel_checks, "SECONDS", 0.0)
    monkeypatch.setattr(kernel_checks, "LENGTH", 64)
    monkeypatch.setattr(kernel_checks.ratios, "__defaults__", (0.0,))
    monkeypatch.delenv(machine.SETTING, raising=False)
    yield
    os.environ.pop(machine.SETTING, None)


def run(*arguments):
    return CliRunner().invoke(main, ["doctor", *arguments], prog_name="regard")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_point_is_found_and_nothing_is_broken_here(lang):
    found = regard.doctor(lang=lang)
    assert sorted(check.name for check in found) == sorted(NAMES)
    assert not found.broken
    assert all(check.found for check in found)
    assert all(bool(check.do) == (check.status != "ok") for check in found)
    assert found["torch"].values["version"] == sys.modules["torch"].__version__
    assert found["kernel"].values["error"] < 1e-5
    assert set(found["speed"].values) == {"window", "statistics"}
    assert str(found).count("\n") == len(NAMES) - 1


def test_the_command_prints_one_line_each_and_ends_with_0(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = run()
    assert shown.exit_code == 0
    for check in regard.doctor():
        assert check.title in shown.output
    assert "Everything that regard needs works." in shown.output
    assert "一切均正常" in run("--lang", "zh").output


@pytest.mark.parametrize("columns", ["40", "80"])
def test_it_fits_a_narrow_terminal(monkeypatch, columns):
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", columns)
    for lang in ("en", "zh"):
        lines = run("--lang", lang).output.splitlines()
        assert max(map(cell_len, lines)) <= int(columns)


def test_json_has_everything():
    read = json.loads(run("--json").output)
    assert read["broken"] is False
    assert {check["name"] for check in read["checks"]} == set(NAMES)
    assert set(read["checks"][0]) == {"name", "status", "title", "found", "do", "values"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_machine_that_needs_a_limit_is_told_what_to_set(monkeypatch, lang):
    limited = machine.HalfPrecision("limited", machine.LIMITS[0], "bfloat16 product: illegal instruction")
    monkeypatch.setattr(machine, "half_precision", lambda again: limited)
    check = regard.doctor(lang=lang)["half_precision"]
    assert check.status == "note"
    assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in check.do
    assert "bfloat16 product: illegal instruction" in check.found
    assert check.values["setting"] == "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"


def test_a_machine_where_nothing_helps_is_broken_and_the_status_is_1(monkeypatch):
    monkeypatch.setattr(machine, "half_precision", lambda again: machine.HalfPrecision("dies", "", "SIGILL"))
    shown = run()
    assert shown.exit_code == 1
    assert "✗" in shown.output
    assert "Use float32 on this machine" in shown.output
    assert "1 broken" in shown.output
    assert run("--json").exit_code == 1


def test_what_could_not_be_tried_is_a_note(monkeypatch):
    monkeypatch.setattr(machine, "half_precision", lambda again: machine.HalfPrecision("unknown", "", "no"))
    assert regard.doctor()["half_precision"].status == "note"


def test_a_setting_of_the_user_is_named(monkeypatch):
    monkeypatch.setenv(machine.SETTING, "AVX2")
    assert "ONEDNN_MAX_CPU_ISA=AVX2" in regard.doctor()["half_precision"].found


def test_a_missing_package_is_broken_and_a_missing_extra_a_note(monkeypatch):
    there = metadata.version

    def version(name):
        if name in ("matplotlib", "pyarrow"):
            raise metadata.PackageNotFoundError(name)
        return "0.1" if name == "rich" else there(name)

    monkeypatch.setattr(metadata, "version", version)
    found = regard.doctor()
    assert found.broken
    assert found["packages"].status == "broken"
    assert 'pip install "matplotlib>=3.9" "rich>=13.7"' in found["packages"].do
    assert found["extra.survey"].status == "note"
    assert 'pip install "regard[survey]"' in found["extra.survey"].do
    assert found["extra.hf"].status == "ok"


def test_extras_and_requirements_are_those_of_the_package():
    found = package_checks.requirements()
    assert set(found) == {"", "hf", "train", "serve", "survey", "speech"}
    assert {"torch", "numpy"} <= {one.name for one in found[""]}
    assert next(one for one in found[""] if one.name == "torch").least == "2.9"


def test_without_an_installation_versions_are_not_checked(monkeypatch):
    monkeypatch.setattr(package_checks, "OURS", "no such package")
    assert regard.doctor()["packages"].status == "ok"


def test_without_torch_the_rest_is_still_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    found = regard.doctor()
    assert found["torch"].status == "broken"
    assert "kernel" not in [check.name for check in found]
    assert found["caches"]


def test_a_check_that_raises_is_what_it_found(monkeypatch):
    def fails():
        raise RuntimeError("no such luck")

    monkeypatch.setattr(kernel_checks, "error", fails)
    check = regard.doctor()["kernel"]
    assert (check.status, check.found) == ("broken", "RuntimeError: no such luck")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("why", ["off", "not_built", "outdated", "not_loaded"])
def test_statistics_without_the_compiled_pass_are_a_note_that_says_why(monkeypatch, why, lang):
    monkeypatch.setattr(compiled_pass, "compiled_pass", lambda: None)
    monkeypatch.setattr(compiled_pass, "reason_without", lambda: why)
    check = regard.doctor(lang=lang)["row_pass"]
    assert check.status == "note"
    assert check.values["absence"] == why
    assert check.values["error"] < 1e-5
    assert TEXTS.say(f"row_pass.{why}", lang) in check.found
    assert check.do == TEXTS.say(f"do.row_pass.{why}", lang)


def test_the_compiled_pass_is_named_and_wrong_statistics_are_broken(monkeypatch):
    class Built:
        instructions = "AVX2"

    monkeypatch.setattr(compiled_pass, "compiled_pass", Built)
    monkeypatch.setattr(compiled_pass, "reason_without", lambda: None)
    monkeypatch.setattr(kernel_checks, "statistics_error", lambda: 1e-7)
    check = regard.doctor()["row_pass"]
    assert check.status == "ok"
    assert "AVX2" in check.found
    monkeypatch.setattr(kernel_checks, "statistics_error", lambda: float("nan"))
    assert regard.doctor()["row_pass"].status == "broken"


def test_wrong_numbers_are_broken_and_the_plain_kernel_is_a_note(monkeypatch):
    from regard.kernels import fused_kernel

    monkeypatch.setattr(kernel_checks, "error", lambda: 0.5)
    assert regard.doctor()["kernel"].status == "broken"
    monkeypatch.setattr(kernel_checks, "error", lambda: float("nan"))
    assert regard.doctor()["kernel"].status == "broken"
    monkeypatch.setattr(kernel_checks, "error", lambda: 1e-7)
    monkeypatch.setattr(fused_kernel, "available", lambda: False)
    assert regard.doctor()["kernel"].status == "note"


def test_threads_and_folders_and_browser_and_encoding(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file" / "x"))
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.setattr(system_checks, "BROWSERS", ())
    monkeypatch.setattr(system_checks, "PLACES", {})
    monkeypatch.setattr(system_checks, "output_encoding", lambda: ("cp1252", False))
    monkeypatch.setattr(machine, "usable_cores", lambda: 0)
    found = regard.doctor()
    for name in ("caches", "threads", "browser", "output"):
        assert found[name].status == "note"
    assert str(tmp_path / "file" / "x") in found["caches"].found
    assert "OMP_NUM_THREADS" in found["threads"].do
    monkeypatch.setattr(machine, "usable_cores", lambda: 64)
    assert "OMP_WAIT_POLICY=passive" in regard.doctor()["threads"].do


def test_a_slow_window_is_a_note(monkeypatch):
    monkeypatch.setattr(kernel_checks, "ratios", lambda: {"window": 0.5, "statistics": 9.0})
    assert regard.doctor()["speed"].status == "note"


def test_a_language_that_it_does_not_speak_is_refused():
    with pytest.raises(regard.errors.ArgumentError, match="lang must be one of en, zh"):
        regard.doctor(lang="fr")


def test_an_unknown_check_is_a_key_error():
    with pytest.raises(KeyError):
        _ = Diagnosis((Check("a", "ok", "a", "b"),))["b"]


def test_both_languages_have_every_text():
    assert TEXTS.table("en").keys() == TEXTS.table("zh").keys()
    titles = {key.removeprefix("title.") for key in TEXTS.table("en") if key.startswith("title.")}
    assert titles == set(NAMES)
    assert {name for name in vars(examination) if name == "doctor"} == {"doctor"}
    assert diagnosis.doctor is regard.doctor
