"""Runs a hook of the package that lies beside the plugin, which need not be installed.

Old Pythons must be able to read this file. Whatever goes wrong here lets the agent go on and says
why: an exit code of 1 would only be told as an error, and 2 would stop it.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "src")
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11", "python3", "python")
TRIED = "RALPH_HOOK_PYTHON"  # set while a newer Python is tried, so that nobody tries for ever
IS_NEW = "import sys; sys.exit(sys.version_info < (3, 11))"


def launch(hook: str) -> int:
    """Answer the host as this hook does; the exit code."""
    if hook.replace("_", "-") in os.environ.get("RALPH_HOOKS", "").split(","):
        return 0  # a run of Ralph gives the agent this hook itself
    try:
        if sys.version_info < (3, 11):  # noqa: UP036  that is what we are here for
            _exec_newer()
            version = ".".join(map(str, sys.version_info[:2]))
            return _let_go("Python is " + version + ", and 3.11 is needed: install a newer python3")
        sys.path.insert(0, SOURCE)
        return int(__import__("ralph.hooks." + hook, fromlist=["main"]).main())
    except Exception as error:  # noqa: BLE001  a broken installation is nobody's to suffer from
        return _let_go("the plugin is broken: " + repr(error))


def _let_go(why: str) -> int:
    try:
        os.write(2, ("[ralph] the hook did not run: " + why + "\n").encode("utf-8", "replace"))
    except OSError:
        pass  # nobody listens
    return 0


def _exec_newer() -> None:
    """Become a newer Python, if there is one on PATH."""
    if os.environ.get(TRIED):
        return
    os.environ[TRIED] = "1"
    script = os.path.abspath(sys.argv[0])
    for name in NEWER:
        for directory in os.environ.get("PATH", "").split(os.pathsep):
            path = os.path.join(directory, name)
            # What lies in the project is not to be run: PATH may be empty or relative in places.
            # Some of the others are shims, which only know when they are asked.
            if os.path.isabs(directory) and os.access(path, os.X_OK) and _is_new(path):
                os.execv(path, [path, "-I", "-S", script])  # noqa: S606  no shell is wanted


def _is_new(path: str) -> bool:
    return os.spawnv(os.P_WAIT, path, [path, "-I", "-S", "-c", IS_NEW]) == 0  # noqa: S606
