"""Rules about files: what is deleted, overwritten or opened to others, and devices."""

from ralph.guard.paths import DEVICE, OUTSIDE, ROOT, SINK, UNKNOWN
from ralph.guard.rules.rule import Call, Refused, rules
from ralph.guard.shell.text import ANY, EACH, ENDLESS, SURE, plain, shown, unknown

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.guard.paths import Places

CURL_VALUED = "HdXuAeTFmbcxwEr"
ENDLESS_FILES = frozenset({"/dev/zero", "/dev/urandom", "/dev/random"})
_HUGE = 100 * 1024**3
_HISTORIES = (".bash_history", ".zsh_history", ".history", ".python_history", ".sh_history")


def judge_change(path: str, places: "Places", cwd: str, verb: str, *, into: bool = False) -> None:
    """Refuse a change of this path, unless it lies below the project or the temporary directory.
    Something may be put `into` the project itself."""
    kind, name = places.kind(path, cwd), shown(path)
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        raise Refused("reverse-shell", f"{name} is a connection to another machine")
    if kind == SINK:
        return
    if kind == DEVICE:
        raise Refused("device", f"{name} is a device or a switch of the kernel")
    if kind == UNKNOWN:
        _judge_unknown(path, places, verb)
        return
    _judge_special(path, places, cwd, verb)
    if kind == OUTSIDE and into and places.is_temporary_root(path, cwd):
        return
    if kind == OUTSIDE:
        raise Refused(
            "file-system", f"it {verb} {name}, outside the project and the temporary directory"
        )
    if kind == ROOT and not into:
        raise Refused("file-system", f"it {verb} the whole project: {name}")
    if places.is_git(path, cwd) and not path.endswith(".lock"):
        raise Refused("git-history", f"it {verb} {name}, the repository itself")


def _judge_unknown(path: str, places: "Places", verb: str) -> None:
    """Refuse a path that nobody knows, except `rm -rf "${BUILD_DIR:?}/out"` at `standard`: that is
    set, and its author means it."""
    rest = path.removeprefix(f"{ANY}{SURE}")
    sure = verb == "deletes" and rest != path and plain(rest) and ".." not in rest
    instead = "name the path, set the variable in this command, or write ${NAME:?}"
    if places.where.strict:
        sure, instead = False, "name the path"
    if not sure:
        raise Refused("file-system", f"nobody can tell what it {verb}: {shown(path)}; {instead}")


def _judge_special(path: str, places: "Places", cwd: str, verb: str) -> None:
    """Refuse changes of files that mean more than they hold."""
    name = shown(path)
    if path.endswith(_HISTORIES):
        raise Refused("shell-history", f"it {verb} the shell's history: {name}")
    if places.starts_things(path, cwd):
        raise Refused(
            "persistence", f"what stands in {name} is run later, by a login, a timer or git"
        )
    if places.steers(path, cwd) or places.may_steer(path, cwd):
        raise Refused("guard", f"{name} steers Ralph or the agent's host")


def change(call: Call, paths: "Iterable[str]", verb: str, *, into: bool = False) -> None:
    """Refuse a command that changes one of these paths where nothing may be changed."""
    for path in paths:
        judge_change(path, call.places, call.state.cwd, verb, into=into)


def judge_everything(paths: list[str], verb: str) -> None:
    """Refuse what is done to every file of the project."""
    if any(EACH in path for path in paths):
        raise Refused(
            "file-system", f"it {verb} every file of the project; name those that you mean"
        )


def _removes(call: Call) -> None:
    judge_everything(call.args, "deletes")
    change(call, filter(None, call.args), "deletes")  # "" is no file


def _moves(call: Call) -> None:
    target = call.value("-t", "--target-directory")
    sources, last = (call.args, [target]) if target else (call.args[:-1], call.args[-1:])
    judge_everything(sources, "moves away")
    for path in call.args:
        if call.kind(path) == SINK:
            raise Refused("file-system", f"mv would replace {shown(path)} itself")
    change(call, sources, "moves away")
    change(call, last, "overwrites", into=True)


def _copies(call: Call) -> None:
    target = call.value("-t", "--target-directory") if call.name != "rsync" else None
    makes = call.name == "install" and (call.has("--directory") or call.has_letter("d", "mogt"))
    last = [target] if target else call.args if makes else call.args[1:][-1:]
    if call.name == "rsync" and call.has("--delete", "--delete-after", "--delete-excluded"):
        change(call, last, "deletes in")
    else:
        change(call, last, "overwrites", into=True)


def _links(call: Call) -> None:
    """A link to a whole directory outside would lead what follows out of the project."""
    whole = call.whole(call.args[0]) if call.args else "/x/y"
    if (whole.count("/") < 2 and whole[0] == "/") or whole == call.places.where.home:
        raise Refused("evasion", f"a link to {whole} leads out of the project")
    _copies(call)
    cwd = call.state.cwd
    if call.args and call.places.kind(whole, cwd) == OUTSIDE:  # what is done there is done outside
        name = whole.rpartition("/")[2]
        target = call.args[1] if len(call.args) > 1 else name
        call.places.link(f"{target}/{name}", whole, cwd)
        call.places.link(target, whole, cwd)


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
    """`sed -i` and `perl -i`: every word that is a path."""
    lettered = call.has_letter("i", "eEIMmrC0" if call.name in ("perl", "ruby") else "efl")
    if lettered or call.has("--in-place"):
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
    elif "x" in letters or call.has("--extract") or call.has_letter("x", "fC"):
        if "P" in letters or call.has_letter("P", "fC") or call.has("--absolute-names"):
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


_TABLE = """\
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
"""
RULES = rules(
    _TABLE,
    *(_removes, _moves, _copies, _links, _edits, _dd, _unpacks, _output_option, _opens_to_all),
    *(_sets_identity, _outside),
    written=lambda c: change(c, c.args, "overwrites"),
    runs_by_tar=lambda c: c.begins(
        *("--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command")
    ),
    steering=lambda c: any(
        c.places.steers(path, c.state.cwd) for path in c.args if not unknown(path)
    ),
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
)
