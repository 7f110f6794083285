"""Which tests run: --slow, --soak, and what may be skipped anywhere but in CI."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

IN_CI = os.environ.get("CI") == "true"
OURS = ("TIEOUT_", "ANTHROPIC_", "XDG_")
KEPT = frozenset({"TIEOUT_SHARED"})
WEAKER = "this kernel offers"
"""How the reason begins for which a test of the sandbox skips itself."""

# A shared machine can be slow at any moment: no deadline, and in CI the same examples each time.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("local", **COMMON)
settings.register_profile("ci", derandomize=True, print_blob=True, **COMMON)
settings.load_profile("ci" if IN_CI else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")
    parser.addoption("--soak", action="store_true", help="run the tests marked soak too")


def pytest_configure(config: pytest.Config) -> None:
    """No test sees the settings or the keys of the person who runs it."""
    # A job in the background ignores SIGINT, and the programs under test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shared = os.environ.get("TIEOUT_SHARED")
    if IN_CI and shared is not None and not Path(shared).is_dir():
        raise pytest.UsageError(f"TIEOUT_SHARED is {shared!r}, and there is no such folder")
    for name in [name for name in os.environ if name.startswith(OURS) and name not in KEPT]:
        del os.environ[name]


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Caches and configuration of a program under test go to a folder that is thrown away."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for name in ("slow", "soak"):
            if name in item.keywords and not config.getoption(f"--{name}"):
                item.add_marker(pytest.mark.skip(reason=f"{name}: give --{name}"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.root("strace")`: uid 0, and the programs that it names."""
    marker = item.get_closest_marker("root")
    if marker is None:
        return
    if os.geteuid() != 0:
        pytest.skip("root: needs uid 0")
    for program in marker.args:
        if shutil.which(program) is None:
            pytest.skip(f"root: needs {program}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI a test that must run there and skips itself fails: else nobody would see it."""
    report = yield
    chosen = item.get_closest_marker("skip") is None
    if IN_CI and chosen and report.skipped:
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        if must_run(str(reason), root=item.get_closest_marker("root") is not None):
            report.outcome = "failed"
            report.longrepr = f"this test must run in CI, it was skipped: {reason}"
    return report


def must_run(reason: str, *, root: bool) -> bool:
    """Whether CI takes this reason for no reason: a root test, and a weaker sandbox."""
    return root or WEAKER in reason


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder of the repository."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the folder of the file's own fixture `made`, as a user stands in a workspace."""
    monkeypatch.chdir(made)
    monkeypatch.setenv("NO_COLOR", "1")
    return made
