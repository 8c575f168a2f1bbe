"""Rules about files and devices: what is deleted, overwritten, packed or opened to others, also by
an option or by commands for an editor."""

import re
from collections.abc import Iterable

from ralph.guard.follow.state import State
from ralph.guard.paths import DEVICE, OUTSIDE, ROOT, SINK, UNKNOWN
from ralph.guard.rules.rule import Call, Refused, positional, rules
from ralph.guard.shell.text import ANY, EACH, ENDLESS, SURE, names, plain, shown, table, unknown

CURL_VALUED = "HdXuAeTFmbcxwEr"
ENDLESS_FILES = frozenset({"/dev/zero", "/dev/urandom", "/dev/random"})
_HUGE = 100 * 1024**3
_HISTORIES = (".bash_history", ".zsh_history", ".history", ".python_history", ".sh_history")
# By command: options after which a directory or a file to write stands.
_OPTIONS = table("""
    curl: --output-dir
    wget: -P --directory-prefix
    7z 7za 7zz go: -o
    pip pip3: -t --target --prefix --root
    cmake: --prefix
""")
_PLACES = ("PREFIX=", "prefix=", "DESTDIR=")
_TAR_VALUED = ("-C", "--directory", "-f", "--file", "-T", "-X", "--exclude", "-I", "-b")
# Commands for editors. `:!x`, `:r !x`, `:w !x`, `:%!x`, `:terminal x` run others.
_EDITOR_VALUED = names("-c --cmd -S -u -i -s --eval -l -f --funcall --load")
_RANGE = r"[%.$\d,;'<>+-]*"
_BEFORE = rf"^[\s:]*(?:(?:sil\w*|noa\w*|keep\w*|exe\w*|bufdo|argdo)!?\s*['\"]?)*{_RANGE}\s*"
_EDITOR_RUNS = rf"{_BEFORE}(?:(?:r|re|rea|read)?\s*!|(?:w|wr|write)\s+!|te(?:r\w*)?\s+)\s*\w"
_EDITOR_CALLS = (
    r"\b(?:system(?:list)?|delete|writefile|rename|job_?start|termopen|os\.execute|io\.popen"
    r"|os\.remove|uv\.spawn)\s*\(|shell-command|call-process|start-process|make-process|process-file"
    r"|delete-directory|delete-file|delete-recursively|\beshell-command"
)
_EDITOR_WRITES = rf"{_BEFORE}(?:w|wr\w*|wq|x|up\w*|sav\w*)!?\s+(?:>>\s*)?([^\s!|>]\S*)"
_LISP_WRITES = r"\b(?:write-region|write-file|rename-file|copy-file|set-visited-file-name)\b"


def judge_change(path: str, state: State, verb: str, *, into: bool = False) -> None:
    """Refuse a change of this path, unless it lies below the project or the temporary directory.
    Something may be put `into` the project itself."""
    kind, name, where = state.kind(path), shown(path), state.where
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        raise Refused("reverse-shell", f"{name} is a connection to another machine")
    if kind == SINK:
        return
    if kind == DEVICE:
        raise Refused("device", f"{name} is a device or a switch of the kernel")
    if kind == UNKNOWN:
        _judge_unknown(path, verb, strict=where.strict)
        return
    whole = state.whole(path)
    _judge_special(path, state, verb)
    if kind == OUTSIDE and into and whole in where.temps:
        return  # things may be put into a temporary directory itself
    if kind == OUTSIDE:
        raise Refused(
            "file-system", f"it {verb} {name}, outside the project and the temporary directory"
        )
    if kind == ROOT and not into:
        raise Refused("file-system", f"it {verb} the whole project: {name}")
    if ".git" in whole.split("/") and not path.endswith(".lock"):
        raise Refused("git-history", f"it {verb} {name}, the repository itself")


def _judge_unknown(path: str, verb: str, *, strict: bool) -> None:
    """Refuse a path that nobody knows, except `rm -rf "${BUILD_DIR:?}/out"` at `standard`: that is
    set, and its author means it."""
    rest = path.removeprefix(f"{ANY}{SURE}")
    sure = verb == "deletes" and rest != path and plain(rest) and ".." not in rest
    if strict or not sure:
        more = "" if strict else ", set the variable in this command, or write ${NAME:?}"
        instead = f"name the path{more}"
        raise Refused("file-system", f"nobody can tell what it {verb}: {shown(path)}; {instead}")


def _judge_special(path: str, state: State, verb: str) -> None:
    """Refuse changes of files that mean more than they hold."""
    name, whole, where = shown(path), state.whole(path), state.where
    if path.endswith(_HISTORIES):
        raise Refused("shell-history", f"it {verb} the shell's history: {name}")
    if where.starts_things(whole):
        raise Refused(
            "persistence", f"what stands in {name} is run later, by a login, a timer or git"
        )
    if where.steers(whole) or where.may_steer(whole):
        raise Refused("guard", f"{name} steers Ralph or the agent's host")


def change(call: Call, paths: Iterable[str], verb: str, *, into: bool = False) -> None:
    """Refuse a command that changes one of these paths where nothing may be changed, or that takes
    every file of the project; "" is no path."""
    named = [path for path in paths if path]
    if verb in ("deletes", "moves away") and any(EACH in path for path in named):
        raise Refused(
            "file-system", f"it {verb} every file of the project; name those that you mean"
        )
    for path in named:
        judge_change(path, call.state, verb, into=into)


def _moves(call: Call) -> None:
    target = call.value("-t", "--target-directory")
    sources, last = (call.args, [target]) if target else (call.args[:-1], call.args[-1:])
    sinks = [path for path in call.args if call.kind(path) == SINK]
    if sinks:
        raise Refused("file-system", f"mv would replace {shown(sinks[0])} itself")
    change(call, sources, "moves away")
    change(call, last, "overwrites", into=True)


def _copies(call: Call) -> None:
    target = call.value("-t", "--target-directory") if call.name != "rsync" else None
    makes = call.name == "install" and call.given("--directory -d/mogt")
    last = [target] if target else call.args if makes else call.args[1:][-1:]
    if call.name == "rsync" and call.has("--delete", "--delete-after", "--delete-excluded"):
        change(call, [path or "." for path in last], "deletes in")
    else:
        change(call, last, "overwrites", into=True)


def _links(call: Call) -> None:
    """A link to a whole directory outside would lead what follows out of the project."""
    whole = call.whole(call.args[0]) if call.args else "/x/y"
    if (whole.count("/") < 2 and whole[0] == "/") or whole == call.where.home:
        raise Refused("evasion", f"a link to {whole} leads out of the project")
    _copies(call)
    if call.args and call.kind(whole) == OUTSIDE:  # what is done there is done outside
        name = whole.rpartition("/")[2]
        target = call.args[1] if len(call.args) > 1 else name
        for link in (f"{target}/{name}", target):
            call.where.links.append((call.whole(link), call.whole(whole)))


def download_targets(call: Call) -> list[str]:
    """The files that curl or wget is told to write."""
    if call.name == "wget":
        return call.clustered("O", "eoaUPtTwQlADRI") + call.values("--output-document")
    return call.clustered("o", CURL_VALUED) + call.values("--output")


def _output_option(call: Call) -> None:
    if call.name in ("curl", "wget"):
        found = download_targets(call)
    else:
        found = call.values("-o", "--output", "--output-file", "--out", "-out")
    change(call, [path for path in found if path not in ("", "-")], "overwrites", into=True)


def _edits(call: Call) -> None:
    """`sed -i`, `perl -i` and editors: every word that is a path."""
    if call.name not in ("sed", "gsed", "perl"):
        valued = [*_EDITOR_VALUED, *(word for word in call.words if word[-1:] == "c")]
        paths = [path for path in positional(call.words, valued) if path[:1] != "+"]
        change(call, map(call.expanded, paths), "edits")
        return
    if call.given("--in-place -i/eEIMmrC0" if call.name == "perl" else "--in-place -i/efl"):
        script = call.value("-e", "--expression", "-f", "--file", "-E")
        paths = call.args if script is not None else call.args[1:]
        change(call, [path for path in paths if path != script], "overwrites")


def _dd(call: Call) -> None:
    outputs = [word[3:] for word in call.words if word.startswith("of=")]
    endless = any(f"if={path}" in call.words for path in ENDLESS_FILES)
    change(call, outputs, "overwrites")
    if endless and outputs and not any(word.startswith("count=") for word in call.words):
        raise Refused("resource-bomb", "without count= it fills the disk")
    sizes = [_size(w.partition("=")[2]) for w in call.words if w.startswith(("count=", "bs="))]
    if endless and len(sizes) == 2 and sizes[0] * sizes[1] >= _HUGE:
        raise Refused("resource-bomb", "it would fill the disk")


def _unpacks(call: Call) -> None:
    """Archives are unpacked where -C or -d says, and written where -f does."""
    first = call.words[0] if call.words else ""
    letters = "" if first[:2] == "--" else first
    target = None
    if call.name == "unzip":
        target = call.value("-d")
    elif "x" in letters or call.given("--extract -x/fC"):
        if "P" in letters or call.given("--absolute-names -P/fC"):
            raise Refused("file-system", "it may unpack to anywhere")
        target = call.value("-C", "--directory")
    change(call, [target] if target else [], "unpacks into", into=True)


def _size(text: str) -> int:
    """The bytes that `10M` means; 0 if nobody can tell."""
    text = text.upper().rstrip("B").rstrip("I")
    power = "KMGTPE".find(text[-1:]) + 1 if text else 0
    number = text.rstrip("KMGTPE").lstrip("+")
    return int(number) * 1024**power if number.isdecimal() and number.isascii() else 0


def _mode(call: Call) -> str:
    """The rights that are given: a word of chmod, an option of others."""
    if call.name != "chmod":
        return "".join([*call.values("--mode"), *call.clustered("m", "ogtS")])
    return next(
        (w for w in call.words if not w.startswith("--") and (w[:1] != "-" or w[1:2] in "rwxst")),
        "",
    )


def _added(mode: str) -> list[tuple[str, str]]:
    """The users and the rights that they get by `u+x,g=rw`."""
    parts = [part.partition("+") for part in mode.replace("=", "+").split(",")]
    return [(who, rights) for who, plus, rights in parts if plus]


def _opens_to_all(call: Call) -> bool:
    mode = _mode(call)
    if mode.isdecimal():
        return mode[-1] in "2367"
    return any(("o" in who or "a" in who) and "w" in rights for who, rights in _added(mode))


def _sets_identity(call: Call) -> bool:
    """The set-user-id and set-group-id bits."""
    mode = _mode(call)
    if mode.isdecimal():
        return len(mode) > 3 and mode[-4] in "2467"
    return any("s" in rights for _, rights in _added(mode))


def _outside(call: Call) -> None:
    for path in call.args[1:]:
        if path != _mode(call) and call.kind(path) in (OUTSIDE, UNKNOWN, DEVICE):
            raise Refused(
                "permissions", f"it changes the rights of {shown(path)}, outside the project"
            )


def _replaces(call: Call) -> None:
    """`gzip FILE` deletes FILE; not if it is kept, printed or only looked at."""
    if not call.given("--keep --stdout --to-stdout --test --list -k -t -l -c"):
        change(call, call.args, "replaces")


def _in_place(call: Call) -> None:
    """`awk -i inplace`, `yq -i`, `ruby -i`"""
    given: list[str] = []
    if call.name not in ("awk", "gawk"):
        given = call.args[1:] if call.given("--inplace -i/eE") else []
    elif "inplace" in call.values("-i", "--include"):
        given = positional(call.words, ["-i", "--include", "-v", "-F", "-f"])
        given = given[call.value("-f") is None :]
    change(call, given, "overwrites")


def _packs(call: Call, archive: list[str], packed: list[str], *, deletes: bool) -> None:
    written = [path for path in archive if path not in ("", "-") and ":" not in path]
    change(call, written, "overwrites", into=True)
    if deletes:
        there = call.there("-C", "--directory") if "tar" in call.name else call.state
        change(Call([call.name], there), packed, "deletes")


def _tar(call: Call) -> None:
    """`tar cf ARCHIVE FILES`, also with old letters; -C says where the files are."""
    first = call.words[0] if call.words else ""
    letters = first if first[:1] not in ("-", "") else ""  # without a dash
    if "c" not in letters and not call.given("--create -c/fCTXIb"):
        return
    valued = [*_TAR_VALUED, *(w for w in call.words if w[:1] == "-" and w[-1:] in "fCTXIb")]
    given = positional(call.words, valued)
    archive = call.values("--file") or call.clustered("f", "CTXIb")
    if letters:
        archive, given = (given[1:2], given[2:]) if "f" in letters else ([], given[1:])
    _packs(call, archive, given, deletes=call.has("--remove-files"))


def _zip(call: Call) -> None:
    """`zip -m ARCHIVE FILES` moves them into it."""
    given = positional(call.words, ["-b", "-t", "-tt", "-n", "-P", "-x", "-i", "-s"])
    _packs(call, given[:1], given[1:], deletes=bool(call.given("--move -m/btnPxi")))


def _seven(call: Call) -> None:
    """`7z a ARCHIVE FILES -sdel`, `rar m ARCHIVE FILES`"""
    verb, given = "".join(call.args[:1]), call.args[1:]
    deletes = call.has("-sdel", "-df") or (call.name == "rar" and verb in ("m", "mf"))
    if verb in ("a", "u", "m", "mf", "d"):
        _packs(call, given[:1], given[1:], deletes=deletes)


def _editor_commands(call: Call) -> list[str]:
    """Commands for an editor of vim's kind: words after `-c` and `+`, with `|` between them."""
    told = [word[1:] for word in call.words if word[:1] == "+"]
    told += [*call.values("--cmd"), *call.clustered("c", "uiST")]
    return [part for text in told for part in (text, *text.split("|"))]


RULES = rules(
    f"""\
file-system:
    rm|rmdir|unlink|shred|srm|trash|trash-put|rimraf|del-cli|gio (removes)
    mv|rename (moves)
    cp|install|rsync|ditto (copies)
    ln|link (links)
    tee|truncate|fallocate|sponge|mkfifo|patch (written)
    sed|gsed|perl (edits)
    dd (dd)
    tar|gtar|bsdtar|unzip (unpacks)
    curl|wget|sort|openssl|gcc|cc|clang|rustc (output option)
evasion: tar would run a command
    tar|gtar|bsdtar (runs by tar)
guard: it changes what steers Ralph or the agent's host
    touch|mkdir|chmod|chown (steering)
device: it changes disks or their tables
    fdisk|sfdisk|cfdisk|gdisk|sgdisk|parted|wipefs|mkswap|swapon|swapoff|losetup|cryptsetup|hdparm|
        blkdiscard|badblocks|mdadm|pvcreate|pvremove|vgremove|lvremove|lvcreate|zpool|diskutil|
        dmsetup|tune2fs|e2fsck|debugfs|resize2fs|nvme|mkfs|mkfs.ext4|mkfs.ext3|mkfs.ext2|mkfs.xfs|
        mkfs.btrfs|mkfs.vfat|mkfs.fat|mkfs.ntfs|newfs|newfs_hfs|mke2fs|format|flashrom|efibootmgr|
        grub-install (_changes disks)
privilege: it mounts or unmounts file systems
    mount|umount|fusermount (_names one)
resource-bomb: it would fill the disk
    truncate|fallocate|mkfile|head (is huge)
    tee|sponge (without end)
permissions: everybody could write what is made from now on; leave the umask as it is
    umask (_open to all)
resource-bomb: it never ends
    cat|cp (endless)
permissions: everybody could write there; give rights to the owner only
    chmod|install|mkdir (opens to all)
permissions: it lets a program run as its owner
    chmod|install|mkdir (sets identity)
permissions: it shuts everybody out, recursively
    chmod (shuts)
permissions:
    chmod|chown|chgrp (outside)
permissions: it gives files to root
    chown (to root)
permissions: it changes attributes or rights beyond the mode
    chattr|setfacl|setcap|chflags|xattr
file-system:
    {"|".join(_OPTIONS)} (by option)
    make|gmake|ninja (installs)
    gzip|gunzip|bzip2|bunzip2|xz|unxz|lzma|unlzma|lz4|pigz|compress|uncompress (replaces)
    awk|gawk|ruby|yq (in place)
    rsync --remove-source-files (takes away)
    split|csplit (splits)
    tar|gtar|bsdtar (tar)
    zip (zip)
    7z|7za|7zz|7zr|rar (seven)
evasion: it runs a command from an editor
    vim|vi|nvim|ex|view|gvim|vimdiff|emacs|emacsclient (runs)
file-system:
    vim|vi|nvim|ex|view|gvim|vimdiff (writes)
    emacs|emacsclient (writes by lisp)
    vim|vi|nvim|ex|view|gvim|vimdiff|ed|nano|emacs (edits)
""",
    *(_moves, _copies, _links, _edits, _dd, _unpacks, _output_option, _opens_to_all),
    *(_sets_identity, _outside, _replaces, _in_place, _tar, _zip, _seven),
    removes=lambda c: change(c, c.args, "deletes"),
    written=lambda c: change(c, c.args, "overwrites"),
    runs_by_tar=lambda c: c.begins(
        *("--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command")
    ),
    steering=lambda c: any(c.where.steers(c.whole(path)) for path in c.args if not unknown(path)),
    _changes_disks=lambda c: c.words[:1] not in (["-l"], ["--list"], ["list"], ["status"]),
    _names_one=lambda c: bool(c.args),
    is_huge=lambda c: (
        _size(c.value("-s", "--size", "-l", "--length", "-c", "--bytes") or "") >= _HUGE
    ),
    without_end=lambda c: ENDLESS in (c.state.stdin or "") and bool(c.args),
    _open_to_all=lambda c: bool(c.args) and not c.args[0].strip("0"),
    endless=lambda c: not c.state.piped and not ENDLESS_FILES.isdisjoint(c.words),
    shuts=lambda c: (
        c.has_letter("R") and _mode(c) in ("000", "0", "a-rwx", "-rwx", "a=", "a-w", "a-r")
    ),
    to_root=lambda c: bool(c.args) and c.args[0].partition(":")[0] in ("root", "0"),
    takes_away=lambda c: change(c, c.args[:-1], "deletes"),
    by_option=lambda c: change(c, c.values(*_OPTIONS[c.name].split()), "writes to", into=True),
    installs=lambda c: change(
        c,
        [word.partition("=")[2] for word in c.words if word.startswith(_PLACES)],
        "installs into",
        into=True,
    ),
    splits=lambda c: change(
        c, positional(c.words, ["-l", "-b", "-n", "-a", "-C"])[1:2], "writes to"
    ),
    runs=lambda c: (
        any(re.search(_EDITOR_RUNS, command) for command in _editor_commands(c))
        or any(re.search(_EDITOR_CALLS, word) for word in c.words)
    ),
    writes=lambda c: change(
        c,
        [c.expanded(p) for text in _editor_commands(c) for p in re.findall(_EDITOR_WRITES, text)],
        "writes to",
    ),
    writes_by_lisp=lambda c: change(
        c,
        [
            c.expanded(path)
            for text in c.values("--eval", "--execute")
            if re.search(_LISP_WRITES, text)
            for path in re.findall(r'"([/~.][^"]*)"', text)
        ],
        "writes to",
    ),
)
