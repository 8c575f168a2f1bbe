"""Fakes of `sbx`, `docker sandbox` and `srt`, to put on PATH.

Each refuses what the real tool does not know (exit 2), keeps its sandboxes between calls, notes
every call, and treats files as the real one does: sbx works on a clone, docker on a copy that is
synced, srt in place. They need namespaces.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, NoReturn

from kits.sandbox import fake_machine, sync
from ralph.sandbox import layer_store as place
from ralph.testing.scripted_agent.install import PACKAGES

_START = (
    "import sys; sys.path[:0] = sys.argv.pop(1).split(':'); "
    "from kits.sandbox.tools import main; main(sys.argv[1], sys.argv[2], sys.argv[3:])"
)
_TESTS = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
_SHELL = "/tmp/agent"  # the home in a machine, which has a /tmp of its own
# Its machines have no processes of their own to count: the tool counts, which is outside of them.
_PS = '#!/bin/sh\nexec cat "$HOME/processes"\n'
_DAEMON = "Cannot connect to the daemon. Is it running?"


def install_fake(
    directory: str, kind: str, trouble: Mapping[str, str] | None = None, agent: str = ""
) -> str:
    """Write an executable `directory/<kind>`; returns its path.

    `trouble` maps a verb, or `daemon` for all, to what it says when it fails; `version` alone makes
    docker one without sandboxes. `agent` is a shell script: what `run` runs as the agent.
    """
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(os.path.abspath(directory), kind)
    os.makedirs(f"{path}.state/machines", exist_ok=True)
    with open(f"{path}.state/book.json", "w", encoding="utf-8") as file:
        json.dump({"trouble": dict(trouble or {}), "agent": agent}, file)
    words = [
        sys.executable,
        "-I",
        "-S",
        "-X",
        "utf8",
        "-c",
        _START,
        f"{PACKAGES}:{_TESTS}",
        kind,
        f"{path}.state",
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    os.chmod(path, 0o755)
    return path


def fake_calls(path: str) -> list[list[str]]:
    """The arguments of every call so far, in order."""
    try:
        with open(f"{path}.state/calls.jsonl", encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def machines(path: str) -> dict[str, dict[str, Any]]:
    """Every sandbox that there is, and what is known of it."""
    above = f"{path}.state/machines"
    found = {}
    for name in sorted(os.listdir(above)):
        with open(os.path.join(above, name, "facts.json"), encoding="utf-8") as file:
            found[name] = json.load(file)
    return found


def main(kind: str, state: str, argv: list[str]) -> NoReturn:
    """Be the tool."""
    with open(os.path.join(state, "calls.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(argv) + "\n")
    with open(os.path.join(state, "book.json"), encoding="utf-8") as file:
        book = json.load(file)
    if kind == "srt":
        from kits.sandbox import srt

        sys.exit(srt.main(argv))
    if kind == "docker":
        if argv[:1] != ["sandbox"] or "version" in book["trouble"]:
            fail(1, f"docker: unknown command: docker {' '.join(argv[:1])}")
        argv = argv[1:]
    tool = (_Sbx if kind == "sbx" else _Docker)(state, book)
    sys.exit(tool.called(argv))


def fail(code: int, why: str) -> NoReturn:
    """End with an error, as command-line tools do."""
    print(f"ERROR: {why}", file=sys.stderr)
    sys.exit(code)


class Words:
    """Arguments, taken one by one in the order that the tool wants."""

    def __init__(self, argv: list[str]) -> None:
        self._rest = list(argv)

    def flags(self, *, bare: str = "", valued: str = "") -> dict[str, list[str]]:
        """The flags that come next; any other word that looks like one is refused."""
        found: dict[str, list[str]] = {}
        while self._rest and self._rest[0].startswith("-") and self._rest[0] != "--":
            word = self._rest.pop(0)
            if word in bare.split():
                found.setdefault(word, []).append("")
            elif word in valued.split():
                found.setdefault(word, []).append(self.one("a value"))
            else:
                fail(2, f"unknown flag: {word}")
        return found

    def one(self, what: str, *known: str) -> str:
        """The next word, which must be there, and be known if that is asked for."""
        if not self._rest or (known and self._rest[0] not in known):
            fail(2, f"{what} is wanted, not {self._rest[:1]}")
        return self._rest.pop(0)

    def rest(self, *, least: int = 0) -> list[str]:
        """All that is left."""
        if len(self._rest) < least:
            fail(2, "too few arguments")
        rest, self._rest = self._rest, []
        return rest

    def end(self) -> None:
        """Nothing may be left."""
        if self._rest:
            fail(2, f"unknown arguments: {self._rest}")


class _Tool:
    """What both tools do."""

    verbs: tuple[str, ...] = ()
    name_pattern = ""
    rows = ""

    def __init__(self, state: str, book: dict[str, Any]) -> None:
        self._above = os.path.join(state, "machines")
        self._book = book

    def called(self, argv: list[str]) -> int:
        words = Words(argv)
        verb = words.one("a command", *self.verbs)
        if verb != "version" and "daemon" in self._book["trouble"]:
            fail(1, self._book["trouble"]["daemon"] or _DAEMON)
        if verb in self._book["trouble"]:
            fail(1, self._book["trouble"][verb])
        code: int = getattr(self, f"do_{verb}")(words) or 0
        return code

    # ------------------------------------------------------------ verbs

    def do_version(self, words: Words) -> None:
        words.end()
        print("fake 1.0")

    def do_ls(self, words: Words) -> None:
        wants = words.flags(bare="--json")
        words.end()
        rows = [self.facts(name) for name in sorted(os.listdir(self._above))]
        if wants:
            print(json.dumps({self.rows: rows}))
        else:
            print("NAME", *(row["name"] for row in rows), sep="\n")

    def do_exec(self, words: Words) -> int:
        flags = words.flags(bare="-i -t -it", valued="-u -w -e")
        name = self.known(words.one("a sandbox"))
        argv = words.rest(least=1)
        if flags.keys() & {"-t", "-it"} and not os.isatty(0):
            fail(1, "the input device is not a TTY")
        if not flags.keys() & {"-i", "-it"}:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        given = dict(pair.split("=", 1) for pair in flags.get("-e", []))
        self.wake(name)
        directory = flags.get("-w", [self.facts(name)["workspaces"][0]])[0]
        return self.carried_out(name, argv, directory, given)

    def do_run(self, words: Words) -> int:
        name = self.known(self.runs(words))
        words.one("--", "--")
        arguments = words.rest(least=1)
        self.start(name)
        if arguments == ["--version"]:
            print("0.0.0 (fake)")
            return 0
        directory = self.facts(name)["workspaces"][0]
        script = ["sh", "-c", self._book["agent"] or 'echo "agent:" "$@"', "claude", *arguments]
        return self.carried_out(name, script, directory, {})

    def do_stop(self, words: Words) -> None:
        name = self.known(words.one("a sandbox"))
        words.end()
        fake_machine.end(self.place(name))
        self.note(name, status="stopped")

    def do_rm(self, words: Words) -> None:
        words.flags(bare="--force" if self.rows == "sandboxes" else "")
        name = self.known(words.one("a sandbox"))
        words.end()
        fake_machine.end(self.place(name))
        place.remove(self.place(name))  # also what keeps us out

    # ------------------------------------------------------------ machines

    def runs(self, words: Words) -> str:
        raise NotImplementedError

    def wake(self, name: str) -> None:
        """What happens when a command is run in a machine that may be stopped."""
        raise NotImplementedError

    def start(self, name: str) -> None:
        self.note(name, status="running")

    def place(self, name: str, *more: str) -> str:
        return os.path.join(self._above, name, *more)

    def _temporary(self, name: str) -> list[tuple[str, str]]:
        """The host's directory of temporary files is not there either, wherever that is."""
        host = os.path.realpath(tempfile.gettempdir())
        usual = f"{host}/".startswith(("/tmp/", "/var/tmp/"))
        return [] if usual else [(self.place(name, "elsewhere"), host)]

    def known(self, name: str) -> str:
        if not os.path.isdir(self.place(name)):
            fail(1, f"no sandbox named '{name}'")
        return name

    def facts(self, name: str) -> dict[str, Any]:
        with open(self.place(name, "facts.json"), encoding="utf-8") as file:
            facts: dict[str, Any] = json.load(file)
        return facts

    def note(self, machine: str, /, **facts: object) -> None:
        path = self.place(machine, "facts.json")
        known = self.facts(machine) if os.path.exists(path) else {}
        new = f"{path}.{os.getpid()}"
        with open(new, "w", encoding="utf-8") as file:
            json.dump({**known, **facts}, file)
        os.replace(new, path)  # others read it meanwhile

    def make(self, name: str, agent: str, workspaces: list[str]) -> None:
        if not re.fullmatch(self.name_pattern, name):
            fail(2, f"invalid name: {name}")
        if agent != "claude":
            fail(2, f"unknown agent: {agent}")
        if os.path.exists(self.place(name)):
            fail(1, f"sandbox '{name}' already exists")
        wrong = [path for path in workspaces if not os.path.isabs(path) or not os.path.isdir(path)]
        if wrong:
            fail(1, f"no such directory: {wrong}")
        for part in ("tmp/agent/bin", "var", "elsewhere", "project"):
            os.makedirs(self.place(name, part))
        with open(self.place(name, "tmp/agent/bin/ps"), "w", encoding="utf-8") as file:
            file.write(_PS)
            os.chmod(file.fileno(), 0o755)
        facts = {"name": name, "agent": agent, "workspaces": workspaces, "hosts": None}
        self.note(name, status="running", **facts)

    def carried_out(self, name: str, argv: list[str], cwd: str, given: dict[str, str]) -> int:
        facts = self.facts(name)
        with open(self.place(name, "tmp/agent/processes"), "w", encoding="utf-8") as file:
            file.writelines(f"{pid} now\n" for pid in fake_machine.running(self.place(name)))
        project, *others = facts["workspaces"]
        world = fake_machine.World(
            self.place(name),
            binds=(
                (self.place(name, "tmp"), "/tmp"),
                (self.place(name, "var"), "/var/tmp"),
                *self._temporary(name),
                (self.place(name, "project"), project),
                *((path, path) for path in others),
            ),
            hosts=None if facts["hosts"] is None else tuple(facts["hosts"]),
        )
        env = {
            "PATH": f"{_SHELL}/bin:{os.environ['PATH']}",
            "HOME": _SHELL,
            "RALPH_AGENT_HOME": _SHELL,
            "USER": "agent",
            **given,
        }
        return fake_machine.run(world, argv, cwd, env)


class _Sbx(_Tool):
    verbs = ("version", "ls", "create", "exec", "run", "stop", "rm", "policy")
    name_pattern = r"[A-Za-z0-9.+-]+"
    rows = "sandboxes"

    def do_create(self, words: Words) -> None:
        flags = words.flags(bare="--quiet --clone", valued="--name")
        agent, *paths = words.rest(least=2)
        if "--clone" not in flags or "--name" not in flags:
            fail(2, "this fake knows --clone and --name only together")
        if not os.path.isdir(os.path.join(paths[0], ".git")):
            fail(1, "--clone is not supported when run from a Git worktree")
        name = flags["--name"][0]
        self.make(name, agent, paths)
        clone = ["git", "clone", "--quiet", "--no-hardlinks", paths[0], self.place(name, "project")]
        subprocess.run(clone, check=True)

    def runs(self, words: Words) -> str:
        return words.flags(valued="--name").get("--name", [""])[0]

    def wake(self, name: str) -> None:
        self.start(name)

    def do_policy(self, words: Words) -> None:
        what = words.one("allow or deny", "allow", "deny")
        words.one("network", "network")
        name = self.known(words.flags(valued="--sandbox").get("--sandbox", [""])[0])
        resources = words.one("resources").split(",")
        words.end()
        if what == "deny" and resources != ["**"]:
            fail(2, "this fake denies all or nothing")
        everybody = what == "allow" and resources == ["**"]
        hosts = None if everybody else [] if what == "deny" else resources
        self.note(name, hosts=hosts)


class _Docker(_Tool):
    verbs = ("version", "ls", "create", "exec", "run", "stop", "rm", "network")
    name_pattern = r"[A-Za-z0-9_.+-]+"
    rows = "vms"

    def do_create(self, words: Words) -> None:
        flags = words.flags(bare="-q --quiet", valued="--name")
        agent, *paths = words.rest(least=2)
        name = flags.get("--name", [""])[0]
        self.make(name, agent, paths)
        sync.snapshot(paths[0], self.place(name, "project"), self.place(name, "synced.json"))

    def runs(self, words: Words) -> str:
        return words.one("a sandbox")

    def wake(self, name: str) -> None:
        if self.facts(name)["status"] != "running":
            fail(1, f"sandbox '{name}' is not running")

    def start(self, name: str) -> None:
        """Only a machine that starts looks at the project's files anew."""
        if self.facts(name)["status"] != "running":
            sync.snapshot(*self._synced(name))
        super().start(name)

    def carried_out(self, name: str, argv: list[str], cwd: str, given: dict[str, str]) -> int:
        sync.inwards(*self._synced(name))
        try:
            return super().carried_out(name, argv, cwd, given)
        finally:
            sync.outwards(*self._synced(name))

    def _synced(self, name: str) -> tuple[str, str, str]:
        project = self.facts(name)["workspaces"][0]
        return project, self.place(name, "project"), self.place(name, "synced.json")

    def do_network(self, words: Words) -> None:
        words.one("proxy", "proxy")
        name = self.known(words.one("a sandbox"))
        flags = words.flags(valued="--policy --allow-host")
        words.end()
        policy = flags.get("--policy", [""])[0]
        if policy not in ("allow", "deny"):
            fail(2, f"unknown policy: {policy}")
        self.note(name, hosts=None if policy == "allow" else flags.get("--allow-host", []))
