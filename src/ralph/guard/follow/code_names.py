"""Code in other languages with names that say what is called and what it is given: modules and
functions by their own names, and for a variable the text that it was given."""

import re

LITERAL = r"""[fFrRbBuU]{0,2}(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`)"""
_MODULES = "os|subprocess|shutil|pathlib|sys|socket|asyncio|runpy"
_STARRED = {
    "subprocess": "run call Popen check_call check_output getoutput",
    "os": "system popen remove unlink rmdir kill execv execvp posix_spawn posix_spawnp",
    "shutil": "rmtree move",
}
# Patterns are compiled when they are needed: most commands hold no code.
_GIVEN = (
    r"(?m)(?:^|[;{])\s*(?:(?:const|let|var|my|local)\s+)?[$@]?(\w+)\s*=\s*"
    rf"((?:(?:[\w.]*\.)?Path\()?{LITERAL}\)?|\[[^\[\]\n]*\])\s*(?=[;\n}}]|$)"
)
# Every way in which a name gets or changes its value.
_CHANGED = (
    r"\b(\w+)\b\s*(?:\[[^\]\n]*\]\s*)?(?:[-+*/.|&]|\|\|)?=(?![=~>])"
    r"|\b(?:for|as)\s+(\w+)|\b(\w+)\.(?:append|extend|insert|push)\b"
)
_USED = r"(?:(?<=[(,])|(?<=[(,] ))[$@]?(\w+)(?=\s*[,)])|(?<![\w.])(\w+)(?=\.(?:unlink|rm|write_))"


def own_names(code: str, *, python: bool) -> str:
    """The code with its modules', functions' and variables' names replaced by what they mean."""
    return _with_values(_unaliased(code) if python else _renamed(code))


def _unaliased(code: str) -> str:
    """Python with the modules' own names instead of those that it gives them."""
    for module, alias in re.findall(r"\bimport\s+((?:\w+\.)*\w+)\s+as\s+(\w+)", code):
        code = re.sub(rf"(?<![\w.]){alias}\.", f"{module}.", code)
    for module, what in re.findall(rf"\bfrom\s+({_MODULES})\s+import\s+\(?([\w\s,*]+)", code):
        starred = _STARRED.get(module, "").split() if "*" in what else []
        for item in [*what.split(","), *starred]:
            words = item.split() or [""]
            name, alias = words[0], words[-1]
            if name.isidentifier():
                code = re.sub(rf"(?<![\w.]){alias}(?=\s*[\[(.)])", f"{module}.{name}", code)
    return re.sub(r"\((\w+(?:\.\w+)+)\)\s*\(", r"\1(", code)


def _renamed(code: str) -> str:
    """JavaScript with the functions' own names, `const {execSync: run} = require(...)`, and Ruby
    with those of FileUtils."""
    for name, alias in re.findall(r"\b((?:exec|spawn|execFile)(?:Sync)?)\s*:\s*(\w+)", code):
        code = re.sub(rf"(?<![\w.]){alias}(?=\s*\()", name, code)
    if "include FileUtils" in code:
        code = re.sub(r"(?<![\w.:])(?=(?:rm\w*|remove\w*|mv|cp\w*)[\s(]+['\"])", "FileUtils.", code)
    return code


def _with_values(code: str) -> str:
    """The code with the text itself where a variable is used that was given one, and only once."""
    changed = [a or b or c for a, b, c in re.findall(_CHANGED, code)]
    given = {m[1]: m[2] for m in re.finditer(_GIVEN, code) if changed.count(m[1]) == 1}
    if not given:
        return code
    return re.sub(_USED, lambda m: given.get(m[1] or m[2], m[0]), code)
