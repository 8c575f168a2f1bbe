"""How the fake `docker sandbox` keeps two trees the same, with the faults of the real one: a file
that was synced once is never again taken from outside, until the machine is started anew (R §3)."""

import hashlib
import json
import os
import shutil
import stat

Listing = dict[str, list[str]]


def listing(root: str) -> Listing:
    """What stands where, and what it holds."""
    found = {}
    for above, directories, names in os.walk(root):
        for name in (*directories, *names):
            whole = os.path.join(above, name)
            found[os.path.relpath(whole, root)] = _facts(whole)
    return found


def _facts(path: str) -> list[str]:
    info = os.lstat(path)
    mode = str(stat.S_IMODE(info.st_mode))
    if stat.S_ISLNK(info.st_mode):
        return ["link", os.readlink(path)]
    if stat.S_ISDIR(info.st_mode):
        return ["directory", mode]
    if stat.S_ISREG(info.st_mode):
        with open(path, "rb") as file:
            return ["file", mode, hashlib.sha256(file.read()).hexdigest()]
    return ["other"]  # which is not synced


def snapshot(project: str, inside: str, note: str) -> None:
    """The machine starts: inside is as outside."""
    for name in os.listdir(inside):
        _remove(os.path.join(inside, name))
    _bring(project, inside, {}, listing(project))
    _save(note, listing(inside))


def inwards(project: str, inside: str, note: str) -> None:
    """Only what was never synced is taken from outside."""
    with open(note, encoding="utf-8") as file:
        synced: Listing = json.load(file)
    new = {path: facts for path, facts in listing(project).items() if path not in synced}
    _bring(project, inside, {}, new)
    _save(note, {**synced, **new})


def outwards(project: str, inside: str, note: str) -> None:
    """What was changed inside is changed outside too."""
    with open(note, encoding="utf-8") as file:
        synced: Listing = json.load(file)
    now = listing(inside)
    for path in sorted(synced.keys() - now.keys(), reverse=True):
        _remove(os.path.join(project, path))
    _bring(inside, project, synced, now)
    _save(note, now)


def _bring(source: str, to: str, before: Listing, now: Listing) -> None:
    changed = [path for path in sorted(now) if before.get(path) != now[path]]
    for path in changed:
        kind, *_ = now[path]
        here, there = os.path.join(source, path), os.path.join(to, path)
        if kind == "directory":
            if os.path.lexists(there) and (os.path.islink(there) or not os.path.isdir(there)):
                os.unlink(there)
            os.makedirs(there, exist_ok=True)
            shutil.copymode(here, there)
        elif kind != "other":
            _remove(there)
            shutil.copy2(here, there, follow_symlinks=False)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _save(note: str, synced: Listing) -> None:
    with open(note, "w", encoding="utf-8") as file:
        json.dump(synced, file)
