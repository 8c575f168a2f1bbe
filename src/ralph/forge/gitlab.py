"""GitLab, in the cloud or one's own, by the REST API. A merge request is a pull request here."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from ralph.errors import ForgeError
from ralph.forge.answers import (
    each_once,
    end_of_log,
    entry,
    name_of,
    names,
    number,
    objects,
    same,
    sendable,
    text,
    title_of,
)
from ralph.forge.http import Service
from ralph.forge.port import MOST_ISSUES, Check, CheckState, Project, Proposal, Pull, PullState
from ralph.kernel.value import replace, value
from ralph.text.plain import plain

Json = dict[str, Any]
RIGHTS = "the scope api, and the role Developer in the project"
_LONGEST_BODY = 1_000_000  # characters
_TAIL = 1 << 18  # bytes of a log
_DRAFT = "Draft: "
_IS_DRAFT = re.compile(r"\s*(?:\[draft\]|draft:|\(draft\))\s*", re.IGNORECASE)
_JOB = re.compile(r"/(?:-/)?(?:jobs|builds)/([0-9]+)/?")
_RUNNING = (
    *("created", "waiting_for_resource", "waiting_for_callback", "preparing", "pending"),
    *("running", "canceling", "scheduled"),
)
_PASSING = ("unchecked", "checking", "preparing", "approvals_syncing", "ci_still_running")
# After which it may be there: it was made without an answer, or by somebody else meanwhile.
_UNCLEAR = (0, 409, *range(500, 600))
_STATES = {
    "opened": PullState.OPEN,
    "locked": PullState.OPEN,  # while it is being merged
    "merged": PullState.MERGED,
}


@value
class GitLab:
    """One project at GitLab; issues are those of any."""

    service: Service
    repository: str  # group/name, or group/subgroup/name
    name = "GitLab"

    @property
    def _here(self) -> str:
        return _place(self.repository)

    # ---------------------------------------------------------------- merge requests

    def project(self) -> Project:
        found = self.service.get(self._here)
        name, branch = text(found, "path_with_namespace"), text(found, "default_branch")
        return Project(name, branch, text(found, "web_url"))

    def find(self, branch: str) -> Pull | None:
        found = self._opened(Proposal(branch, base="", title="", body=""))
        return None if found is None else _pull(found)

    def put(self, proposal: Proposal) -> Pull:
        title, body = title_of(proposal.title), sendable(proposal.body, _LONGEST_BODY)
        proposal = replace(proposal, title=title, body=body)
        found = self._opened(proposal)
        if found is None:
            try:
                found = self._post(proposal)
            except ForgeError as error:
                found = self._opened(proposal) if error.status in _UNCLEAR else None
                if found is None:
                    raise
        return self._put(found, proposal)

    def pull(self, number: int) -> Pull:
        found = self.service.get(f"{self._here}/merge_requests/{number}")
        return _pull(entry(found, "iid", "merge request"))

    def comment(self, number: int, text: str) -> None:
        self._say(f"{self._here}/merge_requests/{number}", text)

    def merge(self, number: int, commit: str, method: str) -> None:
        """Merge it as the project's settings have it, squashed if the method says so."""
        place = f"{self._here}/merge_requests/{number}"
        try:
            body = {"sha": commit, "squash": method == "squash"}
            self.service.ask("PUT", f"{place}/merge", body)
        except ForgeError as error:
            if error.status not in (401, 404, 405, 406, 409, 422):
                raise
            found = self.service.get(place)
            if text(found, "state") == "merged":
                return
            raise _not_merged(error, found, number, commit) from None

    def _opened(self, proposal: Proposal) -> Json | None:
        """The merge request that is open for a branch of this very project."""
        query = {"source_branch": proposal.branch, "state": "opened", "per_page": 100}
        ours = [
            one
            for page in self.service.pages(f"{self._here}/merge_requests?{urlencode(query)}")
            for one in objects(page)
            if text(one, "source_branch") == proposal.branch
            and number(one, "source_project_id") == number(one, "target_project_id")
        ]
        ours.sort(key=lambda one: (text(one, "target_branch") != proposal.base, number(one, "iid")))
        return ours[0] if ours else None

    def _post(self, proposal: Proposal) -> Json:
        body = {
            "source_branch": proposal.branch,
            "target_branch": proposal.base,
            "title": f"{_DRAFT if proposal.draft else ''}{proposal.title}",
            "description": proposal.body,
        }
        found = self.service.ask("POST", f"{self._here}/merge_requests", body).found
        return entry(found, "iid", "merge request")

    def _put(self, found: Json, proposal: Proposal) -> Pull:
        """Let it say what was proposed. Whether it is a draft is left to people from then on."""
        is_draft = _IS_DRAFT.match(text(found, "title"))
        title = f"{_DRAFT if is_draft else ''}{proposal.title}"
        changes: Json = {}
        if text(found, "title") != title:
            changes["title"] = title
        if not same(text(found, "description"), proposal.body):
            changes["description"] = proposal.body
        if text(found, "target_branch") != proposal.base:
            changes["target_branch"] = proposal.base
        have = found.get("labels")
        labels = [one for one in proposal.labels if not isinstance(have, list) or one not in have]
        if labels:
            changes["add_labels"] = ",".join(labels)
        reviewers, refused = self._reviewers(found, proposal)
        if reviewers:
            changes["reviewer_ids"] = reviewers
        if changes:
            place = f"{self._here}/merge_requests/{number(found, 'iid')}"
            found = entry(self.service.ask("PUT", place, changes).found, "iid", "merge request")
        return replace(_pull(found), refused=refused)

    def _reviewers(self, found: Json, proposal: Proposal) -> tuple[list[int], tuple[str, ...]]:
        """The people to ask for a review, with those who are asked; () if nobody is new. And whom
        GitLab does not know."""
        asked = {name.lower() for name in names(found, "reviewers", "username")}
        ids, refused = [number(one, "id") for one in objects(found, "reviewers")], list[str]()
        new = [name for name in proposal.reviewers if name.lower() not in asked]
        before = len(ids)
        for name in new:
            known = objects(self.service.get(f"users?{urlencode({'username': name})}"))
            ids += [number(one, "id") for one in known[:1]]
            refused += [] if known else [name]
        return (ids if len(ids) > before else []), tuple(refused)

    # ---------------------------------------------------------------- checks

    def checks(self, commit: str) -> tuple[Check, ...]:
        """Jobs, and what others say of the commit: the latest of each name."""
        place = f"{self._here}/repository/commits/{quote(commit)}/statuses?per_page=100"
        latest: dict[str, Json] = {}
        try:
            for page in self.service.pages(place):
                for status in objects(page):
                    name = text(status, "name")
                    newer = number(status, "id") >= number(latest.get(name), "id")
                    if text(status, "sha") == commit and newer:
                        latest[name] = status
        except ForgeError as error:
            if error.status == 404 and "commit not found" in error.message.lower():
                return ()  # it is too new for who answers
            raise
        found = [*map(_check, latest.values())]
        ended = not any(check.state in (CheckState.PENDING, CheckState.FAILED) for check in found)
        if found and ended:
            found += self._unfinished(commit)
        return each_once(found)

    def _unfinished(self, commit: str) -> Iterator[Check]:
        """The pipelines that are not at their end although all their jobs are: they may have been
        made later than what others have said."""
        query = urlencode({"sha": commit, "per_page": 100})
        for page in self.service.pages(f"{self._here}/pipelines?{query}"):
            for pipeline in objects(page):
                is_open = text(pipeline, "status") in _RUNNING
                if is_open and text(pipeline, "sha") == commit:
                    name = f"(pipeline {number(pipeline, 'id')})"
                    yield Check(name, CheckState.PENDING, text(pipeline, "web_url"))

    def log(self, check: Check) -> str:
        if not check.log.isdecimal():
            return ""
        try:
            answer = self.service.ask("GET", f"{self._here}/jobs/{check.log}/trace", tail=_TAIL)
        except ForgeError as error:
            if error.status in (403, 404) and error.retry_after is None:
                return ""
            raise
        return end_of_log(answer.body)

    # ---------------------------------------------------------------- issues

    def issues(self, repository: str, labels: tuple[str, ...], state: str = "open") -> str:
        named = {"open": "opened"}.get(state, state)
        query = urlencode({"state": named, "labels": ",".join(labels), "per_page": 100})
        found: dict[int, Json] = {}
        for page in self.service.pages(f"{_place(repository)}/issues?{query}"):
            for one in objects(page):
                found.setdefault(number(one, "iid"), _issue(one))
            if len(found) >= MOST_ISSUES:
                break
        return json.dumps([*found.values()][:MOST_ISSUES])

    def issue(self, repository: str, number: str) -> str:
        found = self.service.get(f"{_place(repository)}/issues/{quote(number)}")
        return json.dumps([_issue(entry(found, "iid", "issue"))])

    def turn(self, repository: str, number: str, *, done: bool, comment: str) -> None:
        place = f"{_place(repository)}/issues/{quote(number)}"
        self._say(place, comment)
        self.service.ask("PUT", place, {"state_event": "close" if done else "reopen"})

    def _say(self, place: str, words: str) -> None:
        """Comment there, if nobody has said just that."""
        words = sendable(words, _LONGEST_BODY)

        def is_said() -> bool:
            pages = self.service.pages(f"{place}/notes?per_page=100")
            return any(same(text(one, "body"), words) for page in pages for one in objects(page))

        if is_said():
            return
        try:
            self.service.ask("POST", f"{place}/notes", {"body": words})
        except ForgeError as error:
            if error.status in range(1, 500) or not is_said():
                raise


def _place(repository: str) -> str:
    return f"projects/{quote(repository, safe='')}"


def _pull(found: object) -> Pull:
    return Pull(
        number(found, "iid"),
        text(found, "web_url"),
        text(found, "source_branch"),
        text(found, "target_branch"),
        text(found, "sha"),
        _STATES.get(text(found, "state"), PullState.CLOSED),
    )


def _not_merged(error: ForgeError, found: object, number: int, commit: str) -> ForgeError:
    """Why a merge request was not merged, in words."""
    if error.status == 409:
        words = f"merge request {number} is not merged: its branch is not at {commit[:12]} any more"
        return ForgeError(words, "Look who pushed to it", status=409)
    why = text(found, "detailed_merge_status")
    words = f"merge request {number} is not merged: {plain(why) or error.message}"
    later = 5.0 if why in _PASSING else error.retry_after
    return ForgeError(words, "Look at it in a browser", status=error.status, retry_after=later)


def _check(status: Json) -> Check:
    said, allowed = text(status, "status"), status.get("allow_failure") is True
    match said:
        case "success":
            state = CheckState.PASSED
        case "skipped":
            state = CheckState.SKIPPED
        case "manual":  # nobody will start it by himself; the pipeline waits for some
            state = CheckState.SKIPPED if allowed else CheckState.FAILED
        case _ if said in _RUNNING:
            state = CheckState.PENDING
        case _:
            state = CheckState.NEUTRAL if allowed else CheckState.FAILED
    usual = ("success", "failed", "skipped", *_RUNNING)
    words = {"manual": "waits for a person"}.get(said, "" if said in usual else plain(said))
    said = ": ".join(filter(None, (words, plain(text(status, "description")))))
    url = text(status, "target_url")
    job = _JOB.search(url)
    ours = job is not None and job[1] == str(number(status, "id"))
    return Check(name_of(status, "name"), state, url, said, job[1] if job and ours else "")


def _issue(found: Json) -> Json:
    """An issue in the shape that our format reads, which is that of `gh`."""
    labels = found.get("labels")
    return {
        "number": number(found, "iid"),
        "title": text(found, "title"),
        "body": text(found, "description"),
        "state": "CLOSED" if text(found, "state") == "closed" else "OPEN",
        "labels": [{"name": name} for name in labels] if isinstance(labels, list) else [],
        "url": text(found, "web_url"),
        "createdAt": text(found, "created_at"),
        "updatedAt": text(found, "updated_at"),
        "closedAt": text(found, "closed_at") or None,
    }
