"""Follows a command: builtins that change what is known, and commands that run others."""

from collections.abc import Callable

from ralph.guard.follow.code import judge_awk, judge_code, judge_imports, judge_sed
from ralph.guard.follow.expand import judge_again, judge_number
from ralph.guard.follow.output import edit, output_of, remember
from ralph.guard.follow.recipes import judge_written
from ralph.guard.follow.state import State
from ralph.guard.follow.wrappers import inner_commands
from ralph.guard.rules.catalog import judge_call
from ralph.guard.rules.environment import judge_assignment
from ralph.guard.rules.rule import Call, Refused, in_clusters
from ralph.guard.shell.text import ANY, NAMED, NET, TRACES, by_name, names, table, unknown, without

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


def judge_command(argv: list[str], state: State) -> str:
    """Judge a command and all that it runs; what it prints."""
    name = argv[0]
    last = name.rpartition("/")[2]
    if unknown(last) or (unknown(name) and not last):
        raise Refused("evasion", "nobody can tell which command this runs")
    if name not in ("[", "[[") and any(c in name for c in "*?["):
        raise Refused("evasion", "a pattern stands for the command's name")
    if name in state.functions:
        return _function(name, argv[1:], state)
    call = Call(argv, state)
    written = state.files.get(call.whole(name)) if "/" in name else None
    if written is not None:
        return judge_text(written, argv[1:], state, "a file")
    judge_call(call)
    judge_again(call)
    judge_written(call)
    if call.name in _BUILTINS:
        return _BUILTINS[call.name](call) or ""
    if call.name in SHELLS:
        return _shell(call)
    flags = _CODE.get(call.name.rstrip("0123456789.") or call.name)
    return _others(call) if flags is None else _interpreter(call, flags)


def _function(name: str, args: list[str], state: State) -> str:
    if name in state.calling:
        if state.background or state.piped:
            raise Refused("resource-bomb", f"the function {name} starts itself over and over")
        return ANY
    state.used.add(name)
    outer = (state.params, state.calling)
    state.params, state.calling = args, (*state.calling, name)
    printed = state.run(state.functions[name])
    state.params, state.calling = outer
    return printed


def _others(call: Call) -> str:
    """Commands that run other commands, and all the rest."""
    if call.name in ("awk", "gawk", "mawk", "nawk"):
        judge_awk(call)
    if call.name in ("sed", "gsed"):
        judge_sed(call)
        if call.given("--in-place -i/efl"):
            edit(call)
    inner = call.state
    if call.name in _FAR:
        inner = inner.copy()
        inner.far = True
    printed = [inner.call(argv) for argv in inner_commands(call)]
    return "".join(printed) if printed else output_of(call)


def judge_text(
    text: str, params: list[str], state: State, what: str, sent: str | None = None
) -> str:
    """Judge a script that a shell is given, and what is sent to it; what it prints."""
    if NET in text:
        raise Refused("remote-code", f"{what} from the network would be run")
    if ANY in text:
        raise Refused("evasion", f"nobody can tell what {what} would run")
    inner = state.copy()
    inner.params, inner.stdin = params, sent
    if text.startswith("#!") and not any(s in text.partition("\n")[0] for s in SHELLS):
        judge_code(text, Call(["script"], state))
        return ANY
    return inner.text(text)


def _shell(call: Call) -> str:
    words, state = call.words, call.state
    place = 0
    while place < len(words) and words[place][:1] in ("-", "+") and words[place] != "-":
        word = words[place]
        if (word[:2] != "--" and "c" in word[1:]) or word in ("--command", "-c"):
            return _dash_c(words[place + 1 :], state)
        place += 2 if word in ("-o", "+o", "-O", "--rcfile", "--init-file") else 1
        if "s" in word[1:] and word[:2] != "--":
            break
    rest = words[place:]
    if rest and rest[0] not in ("-", "/dev/stdin") and "s" not in "".join(words[:place]):
        return _file(rest, state)
    if state.stdin is None:
        return ANY
    return judge_text(state.stdin, rest[1:], state, "what the shell reads")


def _dash_c(words: list[str], state: State) -> str:
    while words and words[0][:1] == "-" and len(words[0]) > 1:
        words = words[2:] if words[0] in ("-o", "-O") else words[1:]
    if not words:
        return ""
    inner = state.copy()
    inner.zero = words[1] if len(words) > 1 else "bash"
    return judge_text(words[0], words[2:], inner, "the text after -c", state.stdin)


def _file(words: list[str], state: State) -> str:
    """A script in a file: one that this command wrote is followed, others are not."""
    path = words[0]
    known = state.files.get(state.whole(path))
    if known is not None:
        return judge_text(known, words[1:], state, "a script")
    if unknown(path.rpartition("/")[2]):
        raise Refused("evasion", "nobody can tell which script this runs")
    return ANY


def _interpreter(call: Call, flags: str) -> str:
    words, state = call.words, call.state
    for place, word in enumerate(words):
        following = "".join(words[place + 1 : place + 2])
        if glued := in_clusters([word], flags, "rImMWXC"):
            return _code(glued[0] or following, call)
        if word.partition("=")[0] in _LONG_CODE or (call.name == "deno" and word == "eval"):
            return _code(word.partition("=")[2] or following, call)
        if word == "-m" or word[:1] != "-" or word == "-":
            break
    rest = [word for word in words if word[:1] != "-" or word == "-"]
    if state.stdin is not None and (not rest or rest[0] in ("-", "/dev/stdin")):
        _code(state.stdin, call)
    elif rest:
        whole = call.whole(rest[0])
        for ending in ("", ".js", "/index.js", "/__main__.py"):
            if whole + ending in state.files:
                _code(state.files[whole + ending], call)
    return output_of(call)


def _code(code: str, call: Call) -> str:
    if NET in code:
        raise Refused("remote-code", "code from the network would be run")
    if without(code.strip(), TRACES) == ANY:
        raise Refused("evasion", "nobody can tell what this code does")
    judge_code(code.replace(ANY, NAMED), call)
    judge_imports(code, call)
    remember(code, call)
    return ANY


def _cd(call: Call) -> None:
    state = call.state
    target = call.args[0] if call.args else state.where.home
    if target == "-" or unknown(target):
        state.cwd = ANY
    elif not unknown(state.cwd) or target.startswith("/"):
        state.cwd = call.whole(target)


def _pushd(call: Call) -> None:
    call.state.left.append(call.state.cwd)
    _cd(call)


def _popd(call: Call) -> None:
    """Back to where `pushd` was, or to somewhere."""
    left = call.state.left
    call.state.cwd = left.pop() if left and not call.words else ANY


def _eval(call: Call) -> str:
    text = " ".join(call.words)
    if unknown(text):
        category = "remote-code" if NET in text else "evasion"
        raise Refused(category, "eval of a text that nobody can tell")
    return call.state.text(text)


def _source(call: Call) -> str:
    state = call.state
    if not call.words:
        return ""
    if call.words[0] in ("/dev/stdin", "-") and state.stdin is not None:
        return judge_text(state.stdin, call.words[1:], state, "what is read")
    known = state.files.get(call.whole(call.words[0]))
    if known is not None and not unknown(known):
        return state.text(known)
    return _file(call.words, state)


def _trap(call: Call) -> None:
    """`trap 'commands' SIGNALS`: the commands run later, with what is known then."""
    words = [w for w in call.words if w not in ("-p", "-l", "--", "-")]
    if len(words) > 1 and words[0]:
        now, judgement = call.state.copy(), call.state.judgement
        for name in judgement.assigned - {*now.variables, *now.arrays}:
            now.variables[name] = ("",)  # until it is assigned, further on
        judge_text(words[0], [], now, "a trap")
        judgement.traps.append((words[0], call.state))


def _set(call: Call) -> None:
    """`set -- words`"""
    if "--" in call.words:
        call.state.params = call.words[call.words.index("--") + 1 :]


def _shift(call: Call) -> None:
    count = call.args[0] if call.args else "1"
    call.state.params = call.state.params[int(count) :] if count.isdecimal() else [ANY]


def _read(call: Call) -> None:
    """`read`, `mapfile`: variables get what is sent, one line of it."""
    state = call.state
    for text in call.clustered("C", "dnOsuc") if call.name != "read" else ():
        judge_text(f'{text} 0 "$1"', [ANY], state, "the text after -C")
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


def _printf(call: Call) -> str:
    """`printf`, which may print into a variable."""
    if call.words[:1] != ["-v"] or len(call.words) < 3:
        return output_of(call)
    call.state.assign(call.words[1], output_of(Call(["printf", *call.words[2:]], call.state)))
    return ""


def _unset(call: Call) -> None:
    for name in call.args:
        call.state.variables[name] = ("",)
        call.state.arrays.pop(name, None)


def _alias(call: Call) -> None:
    """`alias name='commands'`, where the name is an unusual one."""
    for word in call.args:
        if "=" in word:
            judge_text(word.partition("=")[2], [], call.state, "an alias")


def _env(call: Call) -> str:
    inner = call.state.copy()
    words = list(call.words)
    while words and (words[0][:1] == "-" or "=" in words[0]):
        word = words.pop(0)
        name, _, value = word.partition("=")
        glued = value if word[:2] == "--" else word[2:]
        if word.startswith(("-S", "--split-string")):
            rest = glued or (words.pop(0) if words else "")
            if words:  # they are words already
                return inner.call([*rest.split(), *words])
            return judge_text(rest, [], inner, "the text after -S")
        if word in ("-u", "--unset"):
            judge_command(["unset", *words[:1]], inner)
            words = words[1:]
        elif word.startswith("--unset="):
            judge_command(["unset", value], inner)
        elif word.startswith(("-C", "--chdir")):
            _cd(Call(["cd", glued or (words.pop(0) if words else ANY)], inner))
        elif word[:1] != "-":
            judge_assignment(name, value, inner)
            inner.assign(name, value)
    return inner.call(words) if words else ANY


# Some print something, or run a command that does.
_BUILTINS: dict[str, Callable[[Call], str | None]] = by_name(
    {
        "cd": _cd,
        "pushd": _pushd,
        "popd": _popd,
        "eval": _eval,
        "source .": _source,
        "trap": _trap,
        "set": _set,
        "shift": _shift,
        "read mapfile readarray": _read,
        "printf": _printf,
        "unset": _unset,
        "alias": _alias,
        "env": _env,
    }
)
