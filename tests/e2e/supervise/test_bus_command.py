"""`ralph bus`: post, read and follow the messages of a task (S)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from rights_support import AS_ORDINARY_USER, needs_ordinary_user
from run_support import RALPH, Done, Here, Running, assert_clear, in_shell, ralph, text

from ralph.loops.supervise.bus import Bus, new_message
from ralph.loops.supervise.bus_format import Message

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

KEY = "sk-ant-api03-abcdefghijklmnop"
FIELDS = ["msg_id", "ts", "type", "project_id", "task_id", "run_id", "body"]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def task(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task's directory, named by TASK_FOLDER as its agent finds it."""
    directory = workspace / "shop" / "checkout"
    directory.mkdir(parents=True)
    monkeypatch.setenv("TASK_FOLDER", str(directory))
    return directory


def bus_of(task: Path) -> Bus:
    return Bus(str(task / "TASK-MESSAGE-BUS.md"))


def posted(task: Path, body: str, kind: str = "FACT", run: str = "r-001") -> Message:
    made = new_message(kind, body, project="shop", task="checkout", run=run, now=1_794_751_200.0)
    bus_of(task).post(made)
    return made


def with_input(data: bytes, *arguments: str) -> Done:
    done = subprocess.run(
        [*RALPH, "bus", *arguments], input=data, capture_output=True, timeout=60, check=False
    )
    return Done(done.returncode, text(done.stdout), text(done.stderr))


# ------------------------------------------------------------------ posting


def test_post_prints_the_id_of_the_new_message(
    here: Here, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "task from `TASK_FOLDER`"; run_id is $RALPH_RUN."""
    monkeypatch.setenv("RALPH_RUN", "20261115-140000-ab12-001")
    done = here("bus", "post", "--type", "FACT", "the parser is done")
    assert_clear(done, 0)
    (found,) = bus_of(task).read()
    assert done.out == f"{found.msg_id}\n"
    assert (found.type, found.body) == ("FACT", "the parser is done")
    assert (found.project_id, found.task_id) == ("shop", "checkout")
    assert found.run_id == "20261115-140000-ab12-001"


def test_post_as_json_prints_the_whole_message(here: Here, task: Path) -> None:
    (told,) = here("bus", "post", "--type", "FACT", "--json", "x").objects
    assert list(told) == FIELDS
    assert here("bus", "read", "--json").objects == [told]


def test_the_project_has_a_bus_of_its_own(here: Here, task: Path) -> None:
    here("bus", "post", "--project", "--type", "FACT", "for all")
    assert here("bus", "read").out == ""
    (told,) = here("bus", "read", "--project", "--json").objects
    assert (told["body"], told["task_id"]) == ("for all", "checkout")
    assert (task.parent / "PROJECT-MESSAGE-BUS.md").exists()


HARD = "\r\n\0\x1b[31m 😀 ü\n\n".encode()
ENTRY = b"---\nmsg_id: x\n---\nb\n"


@pytest.mark.parametrize("body", [b"", b"hello", ENTRY, HARD, KEY.encode(), b"x" * 300_000])
def test_a_body_from_standard_input_comes_back_byte_for_byte(task: Path, body: bytes) -> None:
    """ "body from stdin if omitted", "the body comes back byte for byte"."""
    assert_clear(with_input(body, "post", "--type", "FACT"), 0)
    (told,) = ralph("bus", "read", "--json").objects
    assert told["body"].encode() == body


def test_a_body_of_the_command_line_comes_back(here: Here, task: Path) -> None:
    for body in ("", "-", "two\nlines", "---"):
        here("bus", "post", "--type", "FACT", "--", body)
    assert [m.body for m in bus_of(task).read()] == ["", "-", "two\nlines", "---"]


@pytest.mark.parametrize(("key", "code"), [("d", 0), ("c", 130)])
def test_at_a_terminal_it_says_that_it_reads(task: Path, key: str, code: int) -> None:
    """ "a terminal at stdin with no BODY: say on stderr that it reads stdin, Ctrl+D ends"."""
    child = pexpect.spawn(RALPH[0], [*RALPH[1:], "bus", "post", "--type", "QUESTION"], timeout=30)
    child.expect_exact("Reading the message from standard input; Ctrl+D ends it.")
    child.sendline("which database?")
    child.expect_exact("which database?")
    child.sendcontrol(key)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == code
    assert [m.body for m in bus_of(task).read()] == ([] if code else ["which database?\n"])


def test_many_processes_post_at_once(task: Path) -> None:
    """ "many writers", with the real command."""
    script = "for n in 1 2 3 4 5; do ralph bus post --type FACT $1.$n; done"
    shell = f'ralph() {{ "{sys.executable}" -m ralph "$@"; }}\n{script}'
    writers = [
        subprocess.Popen(["sh", "-c", shell, "sh", str(n)], stdout=subprocess.PIPE)
        for n in range(4)
    ]
    printed = [writer.communicate(timeout=60)[0].decode().split() for writer in writers]
    found = bus_of(task).read()
    assert sorted(m.body for m in found) == [f"{a}.{b}" for a in range(4) for b in range(1, 6)]
    assert {m.msg_id for m in found} == {name for names in printed for name in names}
    assert len({m.msg_id for m in found}) == 20


# ------------------------------------------------------------------ reading


def test_read_as_json_is_one_object_a_line(here: Here, task: Path) -> None:
    """ "one object a line: `msg_id, ts, type, project_id, task_id, run_id, body`"."""
    first, second = posted(task, "a\nb"), posted(task, KEY)
    told = here("bus", "read", "--json").objects
    assert [list(one) for one in told] == [FIELDS, FIELDS]
    assert [Message(**one) for one in told] == [first, second]


def test_people_see_a_heading_and_the_body_without_tricks(here: Here, task: Path) -> None:
    posted(task, f"one\x1b[2J\n\n  two {KEY}\r\nthree\n\n")
    posted(task, "", kind="DONE\x1b[31m", run="")
    done = here("bus", "read")
    assert_clear(done, 0)
    when = done.out[:19]
    body = ["  one", "", "    two [redacted]", "  three"]
    assert done.out.splitlines() == [f"{when} FACT r-001", *body, f"{when} DONE"]


@pytest.mark.parametrize("moment", ["yesterday", "0001-01-01T00:00:00+23:59", "9999-12-31"])
def test_a_time_that_no_calendar_knows(here: Here, task: Path, moment: str) -> None:
    written = f"---\nmsg_id: a\nts: {moment}\ntype: FACT\n---\nhello\n"
    (task / "TASK-MESSAGE-BUS.md").write_text(written)
    shown = here("bus", "read").out
    assert (shown[:9], shown[-14:]) == (moment[:9], " FACT\n  hello\n")


@pytest.mark.parametrize("arguments", [(), ("--json",), ("-n", "3"), ("--type", "T")])
def test_a_bus_without_messages(here: Here, task: Path, arguments: tuple[str, ...]) -> None:
    """ "An empty/missing bus: nothing, exit 0"."""
    assert here("bus", "read", *arguments) == Done(0, "", "")
    (task / "TASK-MESSAGE-BUS.md").touch()
    assert here("bus", "read", *arguments) == Done(0, "", "")


ALL = {"": "abcd", "-n 2": "cd", "-n 0": "", "-n 99": "abcd"}
TYPES = {"--type FACT": "ac", "--type FACT --type NOTE": "abc", "--type fact": ""}
SINCE = {"--since {b}": "cd", "--since {d}": "", "--since {a} --type FACT": "c"}
MIXED = {"--since {a} -n 1": "d", "--type FACT -n 1": "c"}


@pytest.mark.parametrize(("options", "bodies"), (ALL | TYPES | SINCE | MIXED).items())
def test_which_messages_are_shown(here: Here, task: Path, options: str, bodies: str) -> None:
    """ "--since ID: those after it"."""
    kinds = {"a": "FACT", "b": "NOTE", "c": "FACT", "d": "ERROR"}
    ids = {body: posted(task, body, kind).msg_id for body, kind in kinds.items()}
    told = here("bus", "read", "--json", *options.format(**ids).split()).objects
    assert "".join(one["body"] for one in told) == bodies


def test_a_torn_entry_is_left_out(here: Here, task: Path) -> None:
    """ "a torn last entry is ignored"."""
    posted(task, "whole")
    path = task / "TASK-MESSAGE-BUS.md"
    path.write_bytes(path.read_bytes() * 2)
    os.truncate(path, path.stat().st_size - 3)
    assert [one["body"] for one in here("bus", "read", "--json").objects] == ["whole"]
    posted(task, "after")
    assert [one["body"] for one in here("bus", "read", "--json").objects] == ["whole", "after"]


def test_a_narrow_alphabet(task: Path) -> None:
    posted(task, "naïve 字")
    env = {"PYTHONIOENCODING": "iso8859-5", "PYTHONUTF8": "0"}
    assert "na?ve ?" in ralph("bus", "read", env=env).out
    assert ralph("bus", "read", "--json", env=env).objects[0]["body"] == "naïve 字"


# ------------------------------------------------------------------ following


def heard(workspace: Path) -> str:
    return (workspace.parent / "stdout").read_text("utf-8")


def test_following_shows_what_is_there_and_what_comes(workspace: Path, task: Path) -> None:
    """ "then new ones as they come, until Ctrl+C (130)"."""
    old = posted(task, "old")
    posted(task, "older", kind="NOTE")
    running = Running(workspace, "bus", "follow", "--json", "--type", "FACT")
    running.await_that(lambda: "old" in heard(workspace))
    new = posted(task, "new")
    running.await_that(lambda: "new" in heard(workspace))
    running.send(signal.SIGINT)
    done = running.end()
    assert (done.code, done.err) == (130, "")
    assert [Message(**one) for one in done.objects] == [old, new]


def test_following_a_bus_that_is_not_there_yet(workspace: Path, task: Path) -> None:
    running = Running(workspace, "bus", "follow", "--project")
    project = Bus(str(task.parent / "PROJECT-MESSAGE-BUS.md"))
    project.post(new_message("FACT", "first", project="shop", task="checkout", now=1.0))
    running.await_that(lambda: "  first\n" in heard(workspace))
    running.send(signal.SIGTERM)
    assert running.end().code == 130


def test_following_the_last_one_and_all_new_ones(workspace: Path, task: Path) -> None:
    posted(task, "a")
    posted(task, "b")
    running = Running(workspace, "bus", "follow", "--json", "-n", "1")
    running.await_that(lambda: '"b"' in heard(workspace))
    posted(task, "c")
    running.await_that(lambda: '"c"' in heard(workspace))
    running.send(signal.SIGINT)
    assert [one["body"] for one in running.end().objects] == ["b", "c"]


def test_following_only_new_ones(workspace: Path, task: Path) -> None:
    posted(task, "old")
    running = Running(workspace, "bus", "follow", "--json", "-n", "0")

    def something_came() -> str:
        posted(task, "new")  # until it is heard: nobody tells when the follower is ready
        return heard(workspace)

    running.await_that(something_came)
    running.send(signal.SIGINT)
    assert {one["body"] for one in running.end().objects} == {"new"}


def test_a_closed_pipe_ends_following_quietly(task: Path) -> None:
    """Also while there is nothing to write."""
    posted(task, "one")
    posted(task, "two")
    done = in_shell("ralph bus follow --json | head -n 1")
    assert (done.code, done.err) == (0, "")
    assert done.objects[0]["body"] == "one"


@pytest.mark.parametrize("command", ["read", "read --json", "follow", "post --type FACT x"])
def test_a_closed_or_full_stdout_is_no_bug(task: Path, command: str) -> None:
    posted(task, "one")
    assert_clear(in_shell(f"ralph bus {command} >&-"), 0)
    assert_clear(in_shell(f"ralph bus {command} >/dev/full"), 2, "stdout cannot be written")


# ------------------------------------------------------------------ bad input


EACH = pytest.mark.parametrize("command", [("post", "--type", "T", "x"), ("read",), ("follow",)])


@EACH
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "which task is meant?"),
        (("--task-dir", ""), "which task is meant?"),
        (("--task-dir", "nowhere"), "nowhere cannot be used: No such file or directory"),
        (("--task-dir", "file"), "file cannot be used: Not a directory"),
        (("--project", "--task-dir", "nowhere"), "No such file or directory"),
    ],
)
def test_the_task_must_be_named_and_be_there(
    here: Here, workspace: Path, command: tuple[str, ...], arguments: tuple[str, ...], words: str
) -> None:
    """ "The task: --task-dir, else $TASK_FOLDER, else 2 saying both"."""
    (workspace / "file").touch()
    done = here("bus", *command, *arguments)
    assert_clear(done, 2, words, "--task-dir DIR", "TASK_FOLDER=DIR")


def test_the_flag_goes_before_the_environment(here: Here, task: Path, tmp_path: Path) -> None:
    task.rmdir()
    words = f"$TASK_FOLDER: the task directory {task} cannot be used: No such file"
    assert_clear(here("bus", "read"), 2, words)
    here("bus", "post", "--type", "FACT", "--task-dir", str(tmp_path), "x")
    assert bus_of(tmp_path).read()[0].task_id == tmp_path.name


@pytest.mark.parametrize("before", [True, False])
def test_another_directory(here: Here, task: Path, before: bool) -> None:
    """`-C DIR`, wherever it stands, as for every command."""
    arguments = ["read", "--task-dir", "checkout", "--json"]
    posted(task, "x")
    where = ("-C", str(task.parent))
    done = here(*where, "bus", *arguments) if before else here("bus", *arguments, *where)
    assert [one["body"] for one in done.objects] == ["x"]


@pytest.mark.parametrize("kind", ["", "1", "two words", "ü", "-x", "a" * 65, "A\n", "a/b"])
def test_a_type_that_is_none(here: Here, task: Path, kind: str) -> None:
    done = here("bus", "post", f"--type={kind}", "x")
    assert_clear(done, 2, "is no type", "Try: ralph bus post --help")
    assert bus_of(task).read() == []
    assert here("bus", "post", "--type", ("a.B-_9" * 11)[:64], "x").code == 0


def test_bytes_that_are_no_text_are_refused(here: Here, task: Path) -> None:
    """ "bytes must be UTF-8, else 2"."""
    words = ("is not UTF-8 text (byte 2)", "iconv")
    assert_clear(with_input(b"ab\xff", "post", "--type", "FACT"), 2, *words)
    assert_clear(here("bus", "post", "--type", "FACT", "ab\udcff"), 2, *words)
    assert bus_of(task).read() == []


def test_standard_input_that_cannot_be_read(task: Path) -> None:
    done = in_shell("ralph bus post --type FACT <&-")
    assert_clear(done, 2, "standard input is closed", "ralph bus post --type T 'the message'")
    done = in_shell("ralph bus post --type FACT 0>/dev/null")
    assert_clear(done, 2, "cannot read standard input", "ralph bus post --type T 'the message'")


@EACH
@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_what_is_no_bus_is_told(
    here: Here, task: Path, command: tuple[str, ...], kind: str
) -> None:
    """ "Nobody may hang on a FIFO or directory in the bus's place: a clear error"."""
    path = task / "TASK-MESSAGE-BUS.md"
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    why = "not a regular file" if kind == "fifo" else "Is a directory"
    words = (f"the message bus {path}: {why}", f"ls -ld {path}")
    assert_clear(here("bus", *command), 2, *words)


@needs_ordinary_user
def test_a_bus_that_may_not_be_used(task: Path) -> None:
    posted(task, "x")
    (task / "TASK-MESSAGE-BUS.md").chmod(0o400)
    command = (*AS_ORDINARY_USER, *RALPH)
    done = ralph("bus", "post", "--type", "T", "x", command=command)
    assert_clear(done, 2, "cannot write the message bus", "Permission denied")
    assert ralph("bus", "read", command=command).code == 0
    (task / "TASK-MESSAGE-BUS.md").chmod(0)
    done = ralph("bus", "read", command=command)
    assert_clear(done, 2, "cannot read the message bus", "Permission denied")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("post", "x"), "Missing option '--type'"),
        (("raed",), "No such command 'raed'. Did you mean 'read'?"),
        (("read", "--since", "MSG-none"), "there is no message 'MSG-none' in"),
        (("follow", "--since", "MSG-none"), "there is no message 'MSG-none' in"),
        (("read", "-n", "-1"), "-1 is less than nothing"),
    ],
)
def test_bad_usage(here: Here, task: Path, arguments: tuple[str, ...], words: str) -> None:
    """ "unknown ID: 2 naming it"."""
    posted(task, "x")
    done = here("bus", *arguments)
    assert_clear(done, 2, words, "ralph bus ")
    assert done.out == ""
    assert here("bus", *arguments, "--json").objects[0]["exit"] == 2


def test_the_group_alone_shows_its_help(here: Here) -> None:
    assert here("bus") == Done(2, here("bus", "--help").out, "")


def test_a_current_directory_that_is_gone(task: Path) -> None:
    done = in_shell("mkdir gone && cd gone && rmdir ../gone && ralph bus read --task-dir .")
    assert_clear(done, 2, "the current directory cannot be used")


def test_a_followed_bus_that_goes_bad_is_told(workspace: Path, task: Path) -> None:
    posted(task, "x")
    running = Running(workspace, "bus", "follow")
    running.await_that(lambda: heard(workspace))
    (task / "TASK-MESSAGE-BUS.md").unlink()
    (task / "TASK-MESSAGE-BUS.md").mkdir()
    assert_clear(running.end(), 2, "cannot read the message bus", "Is a directory")
