"""Lifts Claude's cap on held stops in a row in the text of its settings, and restores it."""

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.files.json_edit import JsonText

CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
MARK = "RALPH_LIFTED_CAP"  # beside it, so that nobody's own is taken for ours
_ENV = "env"
_NONE = "0"


def cap_in(text: "JsonText") -> str | None:
    """The cap in the settings; None if there is none."""
    env = text.member(text.top, _ENV)
    cap = env.content.get(CAP) if env is not None and isinstance(env.content, dict) else None
    return cap if isinstance(cap, str) else None


def lifted(text: "JsonText") -> str:
    """The settings without the cap, unless they speak of it already."""
    env = text.member(text.top, _ENV)
    if env is None:
        return text.appended(text.top, 0, {CAP: _NONE, MARK: "1"}, _ENV).raw
    if not isinstance(env.content, dict):
        from ralph.files.json_edit import JsonTextError

        raise JsonTextError(f'"{_ENV}" is not an object')
    if CAP in env.content:
        return text.raw
    return text.appended(env.at, 1, _NONE, CAP).appended(env.at, 1, "1", MARK).raw


def unlifted(text: "JsonText") -> str:
    """The settings without what `lifted` has put in; a cap that is another by now is a person's."""
    env = text.member(text.top, _ENV)
    if env is None or not isinstance(env.content, dict) or MARK not in env.content:
        return text.raw
    ours = (MARK, CAP) if env.content.get(CAP) == _NONE else (MARK,)
    for name in ours:
        found = text.member(env.at, name)
        assert found is not None, "it was seen there"
        text = text.removed(env.at, found.start)
    return text.removed(text.top, env.start).raw if text.is_hollow(env.at) else text.raw
