"""GitHub's REST API, as far as Ralph uses it; the shapes are those of its OpenAPI description."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from kits.forge.fake import WHEN, FakeForge, Issue, PullRequest, Reply, Sent, newest_first, paged
from kits.forge.pictures import Run, Status, Suites

Json = dict[str, Any]
NOT_FOUND = Reply(404, {"message": "Not Found", "status": "404"})


def invalid(message: str, **error: str) -> Reply:
    errors = [{**({"message": message} if message else {}), **error}]
    return Reply(422, {"message": "Validation Failed", "errors": errors})


def reply(forge: FakeForge, sent: Sent) -> Reply:
    path = unquote(sent.path)
    found = re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)?", path)
    if found is None:
        return NOT_FOUND
    repository, rest = found[1], found[2] or ""
    for method, pattern, answer in ROUTES:
        match = re.fullmatch(pattern, rest)
        homes = {forge.repository.lower(), *(one.repository.lower() for one in forge.issues)}
        of_all = pattern.startswith("/issues") and repository.lower() in homes
        known = repository.lower() == forge.repository.lower() or of_all
        if method == sent.method and match and known:
            return answer(forge, sent, repository, *match.groups())
    return NOT_FOUND


# -------------------------------------------------------------------- repository


def project(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    return Reply(
        200,
        {
            "id": 1296269,
            "full_name": forge.repository,
            "html_url": f"https://github.test/{forge.repository}",
            "default_branch": forge.default_branch,
            "private": not forge.public,
        },
    )


# -------------------------------------------------------------------- pull requests


def shown(forge: FakeForge, pull: PullRequest) -> Json:
    merged = pull.state == "merged"
    home = pull.home or forge.repository
    return {
        "number": pull.number,
        "html_url": f"https://github.test/{forge.repository}/pull/{pull.number}",
        "state": "open" if pull.state == "open" else "closed",
        "title": pull.title,
        "body": pull.body or None,
        "draft": pull.draft,
        "merged": merged,
        "merged_at": WHEN if merged else None,
        "merge_commit_sha": pull.merged_as or None,
        "head": {
            "ref": pull.branch,
            "sha": pull.last_head or forge.head(pull.branch),
            "repo": {"full_name": home},
            "label": f"{home.partition('/')[0]}:{pull.branch}",
        },
        "base": {"ref": pull.base, "repo": {"full_name": forge.repository}},
        "labels": [{"name": name} for name in pull.labels],
        "requested_reviewers": [{"login": name} for name in pull.reviewers],
        "requested_teams": [{"slug": name} for name in pull.teams],
    }


def pulls(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    state, head = sent.query.get("state", "open"), sent.query.get("head", "")
    rows = []
    for pull in newest_first(forge.pulls):
        one = shown(forge, pull)
        if state in ("all", one["state"]) and (":" not in head or one["head"]["label"] == head):
            rows.append(one)
    found, headers = paged(forge, sent, rows)
    return Reply(200, found, headers)


def open_pull(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    body = sent.body
    branch, base = body["head"].rpartition(":")[2], body["base"]
    if not forge.head(branch):
        return invalid("", resource="PullRequest", field="head", code="invalid")
    if not forge.head(base):
        return invalid("", resource="PullRequest", field="base", code="invalid")
    ours = [p for p in forge.pulls if p.state == "open" and not p.home and p.branch == branch]
    if any(p.base == base for p in ours):
        owner = forge.repository.partition("/")[0]
        return invalid(f"A pull request already exists for {owner}:{branch}.")
    if not forge.git("rev-list", "--max-count=1", f"{base}..{branch}"):
        return invalid(f"No commits between {base} and {branch}")
    if body.get("draft") and not forge.drafts:
        return invalid("Draft pull requests are not supported in this repository.")
    if len(body.get("body") or "") > 65_536:
        return invalid("body is too long (maximum is 65536 characters)")
    if len(body["title"]) > 256:
        return invalid("title is too long (maximum is 256 characters)")
    pull = PullRequest(
        *(forge.number(), branch, base, body["title"], body.get("body") or ""),
        draft=bool(body.get("draft")),
    )
    forge.pulls.append(pull)
    return Reply(201, shown(forge, pull))


def pull_of(forge: FakeForge, number: str) -> PullRequest | None:
    return next((one for one in forge.pulls if one.number == int(number)), None)


def get_pull(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    pull = pull_of(forge, number)
    return Reply(200, shown(forge, pull)) if pull else NOT_FOUND


def change_pull(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not (pull := pull_of(forge, number)):
        return NOT_FOUND
    if "base" in sent.body and not forge.head(sent.body["base"]):
        return invalid("", resource="PullRequest", field="base", code="invalid")
    for name, held in sent.body.items():
        assert name in ("title", "body", "base", "state"), name  # a draft is not changed by REST
        setattr(pull, name, held)
    return Reply(200, shown(forge, pull))


def merge(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not (pull := pull_of(forge, number)):
        return NOT_FOUND
    no = Reply(405, {"message": "Pull Request is not mergeable", "status": "405"})
    head = forge.head(pull.branch)
    if pull.state != "open" or pull.draft:
        return no
    if sent.body.get("sha", head) != head:
        words = "Head branch was modified. Review and try the merge again."
        return Reply(409, {"message": words, "status": "409"})
    if not forge.merged(pull, head, sent.body.get("merge_method", "merge")):
        return no
    words = "Pull Request successfully merged"
    return Reply(200, {"sha": pull.merged_as, "merged": True, "message": words})


def reviews(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not (pull := pull_of(forge, number)):
        return NOT_FOUND
    rows = [{"user": {"login": name}, "state": "COMMENTED"} for name in pull.reviewed]
    found, headers = paged(forge, sent, rows)
    return Reply(200, found, headers)


def request_reviews(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not (pull := pull_of(forge, number)):
        return NOT_FOUND
    people, teams = sent.body.get("reviewers", []), sent.body.get("team_reviewers", [])
    people = [name.lower() for name in people]
    if set(people) - set(forge.users) or set(teams) - set(forge.teams):
        words = "Reviews may only be requested from collaborators."
        return Reply(422, {"message": f"{words} One or more is not a collaborator."})
    pull.reviewers = list(dict.fromkeys([*pull.reviewers, *people]))
    pull.teams = list(dict.fromkeys([*pull.teams, *teams]))
    return Reply(201, shown(forge, pull))


def add_labels(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    target = pull_of(forge, number) or issue_of(forge, repository, number)
    if target is None:
        return NOT_FOUND
    if set(sent.body["labels"]) & set(forge.no_labels):
        return invalid("", resource="Label", field="name", code="invalid")
    target.labels = list(dict.fromkeys([*target.labels, *sent.body["labels"]]))
    return Reply(200, [{"name": name} for name in target.labels])


# -------------------------------------------------------------------- checks


def run_shown(forge: FakeForge, commit: str, run: Run) -> Json:
    number = forge.run_number(commit, run)
    actions = run.app == "github-actions"
    place = f"https://github.test/{forge.repository}"
    return {
        "id": number,
        "name": run.name,
        "head_sha": run.sha or commit,
        "status": run.status or ("completed" if run.conclusion else "queued"),
        "conclusion": run.conclusion or None,
        "html_url": f"{place}/actions/runs/7/job/{number}" if actions else f"{place}/runs/{number}",
        "details_url": None,
        "check_suite": {"id": run.suite},
        "app": {"slug": run.app, "name": run.app},
        "output": {"title": run.title or None, "summary": run.summary or None, "text": None},
    }


def known(forge: FakeForge, commit: str) -> bool:
    return forge.git("cat-file", "-t", commit, fails=True) == "commit"


def check_runs(forge: FakeForge, sent: Sent, repository: str, commit: str) -> Reply:
    if not known(forge, commit):
        return Reply(422, {"message": f"No commit found for SHA: {commit}"})
    assert sent.query["filter"] == "latest"
    picture = forge.looked(commit, anew=sent.query.get("page", "1") == "1")
    rows = [run_shown(forge, commit, one) for one in picture if isinstance(one, Run)]
    forge.outputs |= {row["id"]: row for row in rows}
    found, headers = paged(forge, sent, rows)
    return Reply(200, {"total_count": len(rows), "check_runs": found}, headers)


def statuses(forge: FakeForge, sent: Sent, repository: str, commit: str) -> Reply:
    if not known(forge, commit):
        return Reply(422, {"message": f"No commit found for SHA: {commit}"})
    those = [one for one in forge.looked(commit, anew=False) if isinstance(one, Status)]
    rows = [
        {
            "id": one.number or 500 + at,
            "context": one.context,
            "state": one.state,
            "description": one.description or None,
            "target_url": None,
        }
        for at, one in enumerate(those)
    ]
    found, headers = paged(forge, sent, rows)
    states = {one.state for one in those}
    state = "failure" if states & {"failure", "error"} else "pending"
    state = "success" if states == {"success"} else state
    sha = next((one.sha for one in those if one.sha), commit)
    whole = {"state": state, "statuses": found, "sha": sha, "total_count": len(rows)}
    return Reply(200, whole, headers)


def suites(forge: FakeForge, sent: Sent, repository: str, commit: str) -> Reply:
    picture = forge.looked(commit, anew=False)
    open_ones = {n for one in picture if isinstance(one, Suites) for n in one.numbers}
    runs = [one for one in picture if isinstance(one, Run)]
    rows = []
    for number in sorted({run.suite for run in runs} | open_ones):
        own = [run for run in runs if run.suite == number]
        ended = all(run.conclusion for run in own) and number not in open_ones
        app = own[0].app if own else "github-actions"
        rows.append(
            {
                "id": number,
                "head_sha": commit,
                "status": "completed" if ended else "in_progress",
                "latest_check_runs_count": len(own),
                "app": {"slug": app, "name": app},
            }
        )
    # Every app that may check gets a suite, and some never begin.
    asleep = {"slug": "asleep", "name": "Asleep"}
    rows.append(
        {
            "id": 999,
            "head_sha": commit,
            "status": "queued",
            "latest_check_runs_count": 0,
            "app": asleep,
        }
    )
    found, headers = paged(forge, sent, rows)
    return Reply(200, {"total_count": len(rows), "check_suites": found}, headers)


def check_run(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    found = forge.outputs.get(int(number))
    return Reply(200, found) if found else NOT_FOUND


def job_log(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not forge.logs.get(int(number)):
        return NOT_FOUND
    return Reply(302, None, {"Location": f"{forge.log_url}/logs/{number}"})


# -------------------------------------------------------------------- issues


def issue_of(forge: FakeForge, repository: str, number: str) -> Issue | None:
    for one in forge.issues:
        home = one.repository or forge.repository
        if one.number == int(number) and home.lower() == repository.lower():
            return one
    return None


def issue_shown(repository: str, issue: Issue) -> Json:
    closed = issue.state == "closed"
    return {
        "id": 1000 + issue.number,
        "node_id": f"I_{issue.number}",
        "number": issue.number,
        "html_url": f"https://github.com/{repository}/issues/{issue.number}",
        "title": issue.title,
        "body": issue.body,
        "state": issue.state,
        "state_reason": issue.reason,
        "labels": [
            {"id": at, "node_id": f"L_{at}", "name": name, "description": None, "color": "ededed"}
            for at, name in enumerate(issue.labels)
        ],
        "assignees": [],
        "milestone": None,
        "created_at": WHEN,
        "updated_at": WHEN,
        "closed_at": WHEN if closed else None,
    }


def issues(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    state = sent.query.get("state", "open")
    wanted = {name.lower() for name in sent.query.get("labels", "").split(",") if name}
    rows: list[Json] = []
    ours = [one for one in forge.issues if (one.repository or forge.repository) == repository]
    here = forge.pulls if repository == forge.repository else []
    for one in newest_first([*ours, *here]):
        if isinstance(one, PullRequest):
            found = {**shown(forge, one), "pull_request": {"url": ""}}
        else:
            found = issue_shown(repository, one)
        have = {name.lower() for name in one.labels}
        if state in ("all", found["state"]) and wanted <= have:
            rows.append(found)
    shown_rows, headers = paged(forge, sent, rows)
    return Reply(200, shown_rows, headers)


def get_issue(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if issue := issue_of(forge, repository, number):
        return Reply(200, issue_shown(repository, issue))
    pull = pull_of(forge, number)
    return Reply(200, {**shown(forge, pull), "pull_request": {}}) if pull else NOT_FOUND


def change_issue(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not (issue := issue_of(forge, repository, number)):
        return NOT_FOUND
    issue.state = sent.body.get("state", issue.state)
    issue.reason = sent.body.get("state_reason") or (
        "reopened" if issue.state == "open" else "completed"
    )
    return Reply(200, issue_shown(repository, issue))


def comments(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    target = issue_of(forge, repository, number) or pull_of(forge, number)
    if target is None:
        return NOT_FOUND
    rows = [{"id": at, "body": body} for at, body in enumerate(target.comments)]
    found, headers = paged(forge, sent, rows)
    return Reply(200, found, headers)


def add_comment(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    target = issue_of(forge, repository, number) or pull_of(forge, number)
    if target is None:
        return NOT_FOUND
    if len(sent.body["body"]) > 65_536:
        return invalid("body is too long (maximum is 65536 characters)")
    target.comments.append(sent.body["body"])
    return Reply(201, {"id": len(target.comments), "body": sent.body["body"]})


Answer = Callable[..., Reply]
ROUTES: list[tuple[str, str, Answer]] = [
    ("GET", "", project),
    ("GET", "/pulls", pulls),
    ("POST", "/pulls", open_pull),
    ("GET", r"/pulls/(\d+)", get_pull),
    ("PATCH", r"/pulls/(\d+)", change_pull),
    ("PUT", r"/pulls/(\d+)/merge", merge),
    ("GET", r"/pulls/(\d+)/reviews", reviews),
    ("POST", r"/pulls/(\d+)/requested_reviewers", request_reviews),
    ("GET", r"/commits/([0-9a-f]+)/check-runs", check_runs),
    ("GET", r"/commits/([0-9a-f]+)/status", statuses),
    ("GET", r"/commits/([0-9a-f]+)/check-suites", suites),
    ("GET", r"/check-runs/(\d+)", check_run),
    ("GET", r"/actions/jobs/(\d+)/logs", job_log),
    ("GET", "/issues", issues),
    ("GET", r"/issues/(\d+)", get_issue),
    ("PATCH", r"/issues/(\d+)", change_issue),
    ("GET", r"/issues/(\d+)/comments", comments),
    ("POST", r"/issues/(\d+)/comments", add_comment),
    ("POST", r"/issues/(\d+)/labels", add_labels),
]
