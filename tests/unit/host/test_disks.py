"""Future places of files, by paths that may not exist, or can never exist."""

from pathlib import Path

from sparkwright.host import observe
from sparkwright.host.lib import disks
from sparkwright.host.observe import ObservationRequest
from tests.tables import Tables

cases = Tables(__file__)


@cases("path", "obstacle")
def test_a_file_in_place_of_a_directory_is_an_obstacle(
    path: str, obstacle: str | None, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    expected = None if obstacle is None else str(tmp_path / obstacle)
    assert disks.obstacle(str(tmp_path / path)) == expected


def test_a_root_below_a_file_is_observed_and_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    root = str(tmp_path / "file/sparkwright")
    seen = observe.main(ObservationRequest(models_root=root, services_root=root))
    assert seen.disks[root].obstacle == str(tmp_path / "file")
    assert seen.disks[root].free > 0
