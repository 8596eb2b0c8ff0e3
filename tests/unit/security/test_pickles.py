"""A model repository with pickles, which run their author's code where they are loaded."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkwright.checks.host.judge import CHECKS, judge
from sparkwright.cli import lock as lock_command
from sparkwright.findings.finding import Severity
from sparkwright.plan.desired import Desired
from sparkwright.resolve.hub import PinnedFile, ResolvedModel
from sparkwright.resolve.lock import Resolution, from_resolution, render_lock
from sparkwright.resolve.pickles import fetched, is_pickle, pickle_symptom
from tests.tables import Tables
from tests.unit.builders import COMMIT, SPARK, plan, probe, resolution, wanted

cases = Tables(__file__)

BODY = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"


def _model(*paths: str) -> ResolvedModel:
    return ResolvedModel("org/name", COMMIT, None, dict.fromkeys(paths, PinnedFile(10, "d" * 64)))


@cases("path")
def test_a_pickle_is_recognized_by_its_name_and_not_fetched(path: str) -> None:
    assert is_pickle(path)
    model = _model("model.safetensors", path)
    assert list(fetched(model, {}).files) == ["model.safetensors"]
    result = pickle_symptom(model, {})
    assert result is not None
    assert result.severity is Severity.WARNING
    assert path in CHECKS.report([result])[0].observed


@cases("path")
def test_files_other_than_pickles_have_no_finding(path: str) -> None:
    assert not is_pickle(path)
    assert pickle_symptom(_model(path), {}) is None


def test_a_repository_of_only_pickles_is_an_error_until_a_setting_names_them() -> None:
    model = _model("config.json", "pytorch_model.bin")
    result = pickle_symptom(model, {})
    assert result is not None
    assert result.severity is Severity.ERROR
    assert '{"org/name/pytorch_model.bin": "why"}' in CHECKS.report([result])[0].remedy
    allowed = {"org/name/*.bin": "made by ourselves"}
    assert pickle_symptom(model, allowed) is None
    assert fetched(model, allowed) == model
    assert pickle_symptom(model, {"org/other/*": "made by ourselves"}) is not None


def _with_pickle(findings: Resolution) -> Resolution:
    names = ("training_args.bin", "sitecustomize.py", "evil.so")
    evil = dict.fromkeys(names, PinnedFile(10, "e" * 64))
    models = {
        key: replace(model, files={**model.files, **evil}) if key.startswith(BODY) else model
        for key, model in findings.models.items()
    }
    return Resolution(images=findings.images, models=models)


def _desired(**settings: Any) -> Desired:
    desired = wanted(plan(SPARK, **settings))
    return replace(desired, resolution=_with_pickle(desired.resolution))


def test_preflight_reports_a_pickle_that_the_host_does_not_get() -> None:
    desired = _desired()
    (result,) = [item for item in judge(desired, probe(), 1000.0) if item.id == "pickle"]
    assert "training_args.bin" in result.observed
    assert result.subject.service == "qwen36"
    names = {path for model in desired.models for path in model.resolved.files}
    assert not {"training_args.bin", "sitecustomize.py", "evil.so"} & names
    assert "sitecustomize.py" in result.observed
    allowed = _desired(allowed_pickles={f"{BODY}/*": "read by our own tool"})
    assert not [item for item in judge(allowed, probe(), 1000.0) if item.id == "pickle"]
    names = {path for model in allowed.models for path in model.resolved.files}
    assert "training_args.bin" in names


def test_the_lock_command_reports_pickles(tmp_path: Path) -> None:
    host = plan(SPARK)
    result = _with_pickle(resolution(host))
    key = next(key for key in result.models if key.startswith(BODY))
    only = replace(result.models[key], files={"pytorch_model.bin": PinnedFile(9, "e" * 64)})
    for resolved, problem in (
        (result, []),
        (
            Resolution(images=result.images, models={**result.models, key: only}),
            [f"{BODY} has pickles or code: pytorch_model.bin; not fetched"],
        ),
    ):
        file = tmp_path / "fleet.lock"
        file.write_text(render_lock(from_resolution([host.references], resolved, None)))
        assert lock_command._check(file, [host]).faults == problem
