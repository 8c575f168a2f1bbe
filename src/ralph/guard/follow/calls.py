"""Follows a command: builtins that change what is known, and commands that run others."""

from ralph.guard.follow.find_xargs import find_actions, xargs_commands
from ralph.guard.follow.found_code import judge_imports
from ralph.guard.follow.inline_code import judge_awk, judge_code, judge_sed
from ralph.guard.follow.output import output_of
from ralph.guard.follow.recipes import judge_written
from ralph.guard.follow.second_evaluation import judge_again, judge_number
from ralph.guard.follow.wrappers import inner_commands
from ralph.guard.follow.written_files import edit, remember
from ralph.guard.rules.catalog import judge_assignment, judge_call
from ralph.guard.rules.rule import Call, Refused
from ralph.guard.shell.text import ANY, NAMED, NET, TRACES, names, table, unknown, without

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.guard.follow.state import Judge, State

SHELLS = names("sh bash zsh dash ksh ash fish mksh rbash tcsh csh")
# Interpreters, and the flags after which their code stands.
_CODE = table("""
    python pypy guile: c
    node nodejs bun ts-node tsx: ep
    perl julia: eE
    ruby lua luajit R Rscript osascript groovy: e
    php: r
    deno tclsh:
""")
_FAR = names("ssh autossh kubectl oc heroku fly flyctl")  # they run commands on other machines
_LONG_CODE = ("--eval", "--print", "--command", "--exec")


class Caller:
    """Judges one command after the other, for one judge."""

    def __init__(self, judge: "Judge") -> None:
        self.judge = judge

    def call(self, argv: list[str], state: "State") -> str:
        """Judge a command and all that it runs; what it prints."""
        name = argv[0]
        last = name.rpartition("/")[2]
        if unknown(last) or (unknown(name) and not last):
            raise Refused("evasion", "nobody can tell which command this runs")
        if name not in ("[", "[[") and any(c in name for c in "*?["):
            raise Refused("evasion", "a pattern stands for the command's name")
        if name in state.functions:
            return self.judge.call_function(name, argv[1:], state)
        call = Call(argv, state, self.judge.places)
        written = state.files.get(call.whole(name)) if "/" in name else None
        if written is not None:
            return self._script(written, argv[1:], state, "a file")
        judge_call(call)
        judge_again(call)
        judge_written(call, self)
        builtin = _BUILTINS.get(call.name)
        if builtin is not None:
            return builtin(self, call, state)
        if call.name in SHELLS:
            return self._shell(call, state)
        flags = _CODE.get(call.name.rstrip("0123456789.") or call.name)
        return self._others(call, state) if flags is None else self._code(call, flags, state)

    def _others(self, call: Call, state: "State") -> str:
        """Commands that run other commands, and all the rest."""
        if call.name in ("awk", "gawk", "mawk", "nawk"):
            judge_awk(call, self)
        if call.name in ("sed", "gsed"):
            judge_sed(call)
            if call.has("--in-place") or call.has_letter("i", "efl"):
                edit(call)
        inner = state.copy() if call.name in _FAR else state
        inner.far = state.far or call.name in _FAR
        printed = [self.again(argv, inner) for argv in inner_commands(call)]
        if call.name in ("xargs", "parallel"):
            printed += [self.again(argv, state) for argv in xargs_commands(call, state.stdin)]
        if call.name in ("find", "gfind"):
            printed += [self.again(argv, state) for argv in find_actions(call)]
        return "".join(printed) if printed else output_of(call)

    def again(self, argv: list[str], state: "State") -> str:
        """A command that another one runs."""
        if not argv:
            return ""
        self.judge.count()
        return self.call(argv, state)

    def _script(
        self, text: str, params: list[str], state: "State", what: str, sent: str | None = None
    ) -> str:
        """A script that a shell is given, and what is sent to it."""
        if NET in text:
            raise Refused("remote-code", f"{what} from the network would be run")
        if ANY in text:
            raise Refused("evasion", f"nobody can tell what {what} would run")
        inner = state.copy()
        inner.params, inner.stdin = params, sent
        if text.startswith("#!") and not any(s in text.partition("\n")[0] for s in SHELLS):
            judge_code(text, Call(["script"], state, self.judge.places), self)
            return ANY
        return self.judge.text(text, inner)

    def _shell(self, call: Call, state: "State") -> str:
        words = call.words
        place = 0
        while place < len(words) and words[place][:1] in ("-", "+") and words[place] != "-":
            word = words[place]
            if (word[:2] != "--" and "c" in word[1:]) or word in ("--command", "-c"):
                return self._dash_c(words[place + 1 :], state)
            place += 2 if word in ("-o", "+o", "-O", "--rcfile", "--init-file") else 1
            if "s" in word[1:] and word[:2] != "--":
                break
        rest = words[place:]
        if rest and rest[0] not in ("-", "/dev/stdin") and "s" not in "".join(words[:place]):
            return self._file(rest, state)
        if state.stdin is None:
            return ANY
        return self._script(state.stdin, rest[1:], state, "what the shell reads")

    def _dash_c(self, words: list[str], state: "State") -> str:
        while words and words[0][:1] == "-" and len(words[0]) > 1:
            words = words[2:] if words[0] in ("-o", "-O") else words[1:]
        if not words:
            return ""
        inner = state.copy()
        inner.zero = words[1] if len(words) > 1 else "bash"
        return self._script(words[0], words[2:], inner, "the text after -c", state.stdin)

    def _file(self, words: list[str], state: "State") -> str:
        """A script in a file: one that this command wrote is followed, others are not."""
        path = words[0]
        known = state.files.get(self.judge.places.absolute(path, state.cwd))
        if known is not None:
            return self._script(known, words[1:], state, "a script")
        if unknown(path.rpartition("/")[2]):
            raise Refused("evasion", "nobody can tell which script this runs")
        return ANY

    def _code(self, call: Call, flags: str, state: "State") -> str:
        words = call.words
        for place, word in enumerate(words):
            if (glued := _inline(word, flags)) is not None:
                return self._judge_code(glued or "".join(words[place + 1 : place + 2]), call)
            if word.partition("=")[0] in _LONG_CODE or (call.name == "deno" and word == "eval"):
                code = word.partition("=")[2] or "".join(words[place + 1 : place + 2])
                return self._judge_code(code, call)
            if word == "-m" or word[:1] != "-" or word == "-":
                break
        rest = [word for word in words if word[:1] != "-" or word == "-"]
        if state.stdin is not None and (not rest or rest[0] in ("-", "/dev/stdin")):
            self._judge_code(state.stdin, call)
        elif rest:
            whole = call.whole(rest[0])
            for ending in ("", ".js", "/index.js", "/__main__.py"):
                if whole + ending in state.files:
                    self._judge_code(state.files[whole + ending], call)
        return output_of(call)

    def _judge_code(self, code: str, call: Call) -> str:
        if NET in code:
            raise Refused("remote-code", "code from the network would be run")
        if without(code.strip(), TRACES) == ANY:
            raise Refused("evasion", "nobody can tell what this code does")
        judge_code(code.replace(ANY, NAMED), call, self)
        judge_imports(code, call, self)
        remember(code, call)
        return ANY

    def cd(self, call: Call, state: "State") -> str:
        target = call.args[0] if call.args else self.judge.where.home
        if target == "-" or unknown(target):
            state.cwd = ANY
        elif not unknown(state.cwd) or target.startswith("/"):
            state.cwd = call.whole(target)
        return ""

    def pushed(self, call: Call, state: "State") -> str:
        state.left.append(state.cwd)
        return self.cd(call, state)

    def back(self, call: Call, state: "State") -> str:
        """`popd`: back to where `pushd` was, or to somewhere."""
        state.cwd = state.left.pop() if state.left and not call.words else ANY
        return ""

    def evaluate(self, call: Call, state: "State") -> str:
        text = " ".join(call.words)
        if unknown(text):
            remote = NET in text
            raise Refused(
                "remote-code" if remote else "evasion", "eval of a text that nobody can tell"
            )
        return self.judge.text(text, state)

    def source(self, call: Call, state: "State") -> str:
        if not call.words:
            return ""
        if call.words[0] in ("/dev/stdin", "-") and state.stdin is not None:
            return self._script(state.stdin, call.words[1:], state, "what is read")
        known = state.files.get(call.whole(call.words[0]))
        if known is not None and not unknown(known):
            return self.judge.text(known, state)
        return self._file(call.words, state)

    def trap(self, call: Call, state: "State") -> str:
        """`trap 'commands' SIGNALS`: the commands run later, with what is known then."""
        words = [w for w in call.words if w not in ("-p", "-l", "--", "-")]
        if len(words) > 1 and words[0]:
            now = state.copy()
            for name in self.judge.assigned - {*state.variables, *state.arrays}:
                now.variables[name] = ("",)  # until it is assigned, further on
            self._script(words[0], [], now, "a trap")
            self.judge.traps.append((words[0], state))
        return ""

    def judge_traps(self) -> None:
        """Judge what traps run at the end, when all is assigned."""
        for text, state in list(self.judge.traps):
            self._script(text, [], state, "a trap")

    def set_(self, call: Call, state: "State") -> str:
        """`set -- words`"""
        if "--" in call.words:
            state.params = call.words[call.words.index("--") + 1 :]
        return ""

    def shift(self, call: Call, state: "State") -> str:
        count = call.args[0] if call.args else "1"
        state.params = state.params[int(count) :] if count.isdecimal() else [ANY]
        return ""

    def read(self, call: Call, state: "State") -> str:
        """`read`, `mapfile`: variables get what is sent, one line of it."""
        for text in call.clustered("C", "dnOsuc") if call.name != "read" else ():
            self._script(f'{text} 0 "$1"', [ANY], state, "the text after -C")
        names = call.args or ["REPLY"]
        lines = tuple(dict.fromkeys((state.stdin or ANY).splitlines())) or ("",)
        if len(names) > 1 or len(lines) > 8:
            lines = (ANY,)
        for name in names:
            state.choice.pop(name, None)
            state.variables[name] = lines
            if call.name != "read":
                state.arrays[name] = list(lines)
            judge_number(name, state)
        return ""

    def printf(self, call: Call, state: "State") -> str:
        """`printf`, which may print into a variable."""
        if call.words[:1] != ["-v"] or len(call.words) < 3:
            return output_of(call)
        printed = output_of(Call(["printf", *call.words[2:]], state, call.places))
        state.assign(call.words[1], printed)
        return ""

    def unset(self, call: Call, state: "State") -> str:
        for name in call.args:
            state.variables[name] = ("",)
            state.arrays.pop(name, None)
        return ""

    def alias(self, call: Call, state: "State") -> str:
        """`alias name='commands'`, where the name is an unusual one."""
        for word in call.args:
            if "=" in word:
                self._script(word.partition("=")[2], [], state, "an alias")
        return ""

    def environment(self, call: Call, state: "State") -> str:
        inner = state.copy()
        words = list(call.words)
        while words and (words[0][:1] == "-" or "=" in words[0]):
            word = words.pop(0)
            if word.startswith(("-S", "--split-string")):
                text = word[2:] if word[:2] == "-S" else word.partition("=")[2]
                rest = text or (words.pop(0) if words else "")
                if words:  # they are words already
                    return self.again([*rest.split(), *words], inner)
                return self._script(rest, [], inner, "the text after -S")
            if word in ("-u", "--unset"):
                self.call(["unset", *words[:1]], inner)
                words = words[1:]
            elif word.startswith("--unset="):
                self.call(["unset", word.partition("=")[2]], inner)
            elif word.startswith(("-C", "--chdir")):
                glued = word[2:] if word[:2] == "-C" else word.partition("=")[2]
                place = glued or (words.pop(0) if words else ANY)
                self.cd(Call(["cd", place], inner, self.judge.places), inner)
            elif word[:1] != "-":
                name, _, value = word.partition("=")
                judge_assignment(name, value, self.judge, inner)
                inner.assign(name, value)
        return self.again(words, inner) if words else ANY


_BUILTINS = {
    "cd": Caller.cd,
    "pushd": Caller.pushed,
    "popd": Caller.back,
    "eval": Caller.evaluate,
    "source": Caller.source,
    ".": Caller.source,
    "trap": Caller.trap,
    "set": Caller.set_,
    "shift": Caller.shift,
    "read": Caller.read,
    "mapfile": Caller.read,
    "readarray": Caller.read,
    "printf": Caller.printf,
    "unset": Caller.unset,
    "alias": Caller.alias,
    "env": Caller.environment,
}


def _inline(word: str, flags: str) -> str | None:
    """The text after the flag for code in a cluster like `-ne`; None if there is none."""
    if word[:1] != "-" or word[1:2] == "-":
        return None
    for place, letter in enumerate(word[1:], 1):
        if letter in flags:
            return word[place + 1 :]
        if letter in "rImMWXC":  # they take the rest of the word
            return None
    return None
