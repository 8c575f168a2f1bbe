"""Variables of the environment by which other programs load code or options."""

import re

from ralph.guard.rules.rule import Refused

# Whatever they name is run.
_ALWAYS = frozenset(
    {
        *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "PROMPT_COMMAND"),
        *("PYTHONSTARTUP", "PERL5DB", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "MAKEFILES"),
    }
)
_AGENT = r"-(?:javaagent|agentpath|agentlib)\b"
# Options that load a file; a package that is installed may be loaded, and so may a plain option.
_OPTIONS = {
    "NODE_OPTIONS": r"(?:^|\s)(?:-r|--require|--import|--(?:experimental-)?loader)[\s=]*"
    r"['\"]?(?:[./~]|data:|file:|https?:)",
    "PERL5OPT": r"[;({/]|(?:^|\s)-(?:[eEI]|d(?!:)|[mM]lib\b)",
    "RUBYOPT": r"(?:^|\s)-(?:r\s*['\"]?[./~]|[eI])",
    "JAVA_TOOL_OPTIONS": _AGENT,
    "_JAVA_OPTIONS": _AGENT,
    "JDK_JAVA_OPTIONS": _AGENT,
    "MAVEN_OPTS": _AGENT,
    "GRADLE_OPTS": _AGENT,
    "GOFLAGS": r"-(?:toolexec|exec)\b",
    "MAKEFLAGS": r"--eval|-f|SHELL=",
}


def judge_loading(name: str, text: str) -> None:
    """Refuse a variable that makes other programs run what it names."""
    loads = name in _ALWAYS and bool(text) and not (name == "ENV" and text.isalnum())
    if loads or (name in _OPTIONS and re.search(_OPTIONS[name], text)):
        raise Refused("evasion", f"{name} makes other programs run what it names")
