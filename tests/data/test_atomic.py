"""Files written whole: through links, to pipes and devices, over what a killed process left, never over the input."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regard.data.atomic import atomic_path, atomic_text_file, check_output_path, part_of
from regard.errors import FolderError, InputError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(target: Path, text: str = "new\n") -> None:
    with atomic_text_file(target) as file:
        file.write(text)


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    real = tmp_path / "below" / "real.txt"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "link.txt"
    link.symlink_to("below/real.txt")
    second = tmp_path / "second.txt"
    second.symlink_to("link.txt")
    write(second)
    assert real.read_text() == "new\n"
    assert real.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert second.is_symlink()
    assert names(tmp_path) == ["below", "link.txt", "second.txt"]
    assert names(tmp_path / "below") == ["real.txt"]


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new\n"


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "link")
    with pytest.raises(FolderError, match="cannot be"):
        write(tmp_path / "link")


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(TypeError), atomic_text_file(target) as file:
        file.writelines(["half", 1])  # type: ignore[list-item]  # fails after the first
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_devices_are_written_to(tmp_path: Path) -> None:
    link = tmp_path / "nothing"
    link.symlink_to("/dev/null")
    for target in (Path("/dev/null"), link):
        check_output_path(target, "--output")
        write(target)
        with atomic_path(target) as new_path:
            new_path.write_bytes(b"x")
    assert Path("/dev/null").is_char_device()
    assert names(tmp_path) == ["nothing"]


@pytest.mark.parametrize("how", ["text", "bytes"])
def test_pipes_are_written_to(tmp_path: Path, how: str) -> None:
    pipe, recorded = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: recorded.append(pipe.read_text()))
    reader.start()
    check_output_path(pipe, "--output")
    if how == "text":
        write(pipe)
    else:
        with atomic_path(pipe) as new_path:
            new_path.write_text("new\n")
    reader.join(10)
    assert recorded == ["new\n"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


STDOUT = """
import sys
from pathlib import Path
from regard.data.atomic import check_output_path, atomic_text_file
target = Path(sys.argv[1])
check_output_path(target, "--output")
print("before", flush=True)
with atomic_text_file(target) as file:
    file.write("new\\n")
print("after")
"""


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_open_files_of_the_process_are_written_where_they_are(tmp_path: Path, name: str) -> None:
    """A redirected standard output is not replaced, nor cut short."""
    log = tmp_path / "log"
    log.write_text("earlier\n")
    with log.open("a") as file:
        subprocess.run([sys.executable, "-c", STDOUT, name], stdout=file, check=True)
    assert log.read_text() == "earlier\nbefore\nnew\nafter\n"
    assert names(tmp_path) == ["log"]


def test_process_substitution(tmp_path: Path) -> None:
    line = f'"{sys.executable}" -c "$CODE" >(cat > "{tmp_path}/copy") && wait'
    subprocess.run(["bash", "-c", f"{line}; sleep 0.2"], env={**os.environ, "CODE": STDOUT}, check=True)
    assert (tmp_path / "copy").read_text() == "new\n"


def test_an_open_file_for_reading_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("")
    with (tmp_path / "in").open() as file, pytest.raises(InputError, match="cannot be written to"):
        check_output_path(Path(f"/dev/fd/{file.fileno()}"), "--output")


def test_what_a_killed_process_left_is_written_over(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    code = (
        "import os, signal, sys; from pathlib import Path; from regard.data.atomic import atomic_text_file\n"
        "with atomic_text_file(Path(sys.argv[1])) as file:\n"
        "    file.write('half' * 10_000); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, target], check=False)
    assert names(tmp_path) == [part_of(target).name]
    write(target)
    assert target.read_text() == "new\n"
    assert names(tmp_path) == ["a.txt"]


def test_what_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with atomic_text_file(target) as file:
        file.write("first")
        with pytest.raises(FolderError, match="another process is writing"):
            write(target)
    assert target.read_text() == "first"
    assert names(tmp_path) == ["a.txt"]


# The input


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("text,label\n")
    (tmp_path / "link.csv").symlink_to("x.csv")
    (tmp_path / "hard.csv").hardlink_to("x.csv")
    return tmp_path / "x.csv"


@pytest.mark.parametrize("name", ["x.csv", "./x.csv", "link.csv", "hard.csv", "../{}/x.csv"])
@pytest.mark.parametrize("options", ["x.csv", "link.csv", "y.csv,x.csv", "*.csv"])
def test_the_input_is_not_written_over(data: Path, name: str, options: str) -> None:
    (data.parent / "y.csv").write_text("text,label\n")
    target = Path(name.format(data.parent.name))
    with pytest.raises(InputError, match="is the input file"):
        check_output_path(target, "--output", inputs=[None, options])


def test_no_split_of_a_folder_is_written_over(data: Path) -> None:
    folder = data.parent / "data"
    folder.mkdir()
    for name in ("train.csv", "test.csv", "notes.txt"):
        (folder / name).touch()
    for name in ("train.csv", "test.csv"):
        with pytest.raises(InputError, match="is the input file"):
            check_output_path(folder / name, "--answers", inputs=[folder])
    check_output_path(folder / "notes.txt", "--answers", inputs=[folder])


def test_standard_input_is_not_written_over(data: Path) -> None:
    code = "from pathlib import Path; from regard.data.atomic import check_output_path\n"
    code += "check_output_path(Path('hard.csv'), '--output', inputs=['-'])"
    with data.open() as file:
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, check=False)
    assert "is the input file stdin" in done.stderr


def test_two_outputs_are_two_files(data: Path) -> None:
    with pytest.raises(InputError, match="--answers and --skip-bad are the same file"):
        check_output_path(Path("new"), "--answers", others={"--skip-bad": Path("./new"), "--answers": Path("new")})


@pytest.mark.parametrize("target", ["missing/a.txt", ".", "x.csv/a"])
def test_places_that_cannot_be_written(data: Path, target: str) -> None:
    with pytest.raises(InputError):
        check_output_path(Path(target), "--output")
