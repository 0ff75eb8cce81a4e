"""Comments: threads, mentions of members, safe Markdown, and who may say something."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from disputes import opening
from disputes.web.markdown import LENGTH_MAX, as_html
from disputes.web.work.comments import Discussion
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Comment, Event, Project, Task
from tasks.remarks.comments import BODY_MAX, add_comment, settle
from tests.factories import create_task, create_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_task(ledger, title="Call politely")


def say(task: Task, body: str, user: User, **kwargs: Any) -> Comment:
    return add_comment(task.project, body, actor=Actor.person(user), task=task, **kwargs)


def told(comment: Comment) -> dict[str, Any]:
    return Event.objects.get(kind="commented", data__comment=comment.pk).data


def test_a_mention_names_members_only_and_not_the_speaker(
    task: Task, lea: User, tom: User, vera: User, otto: User
) -> None:
    body = "@Lea and @vera, see lea@example.org; @otto must not. @tom wrote it, not `x@vera`."
    assert told(say(task, body, tom))["mentions"] == [lea.pk, vera.pk]
    assert told(say(task, "Ask @lea.", tom))["mentions"] == [lea.pk]
    assert "mentions" not in told(say(task, "lea@lea.example", tom))
    User.objects.filter(pk=lea.pk).update(is_active=False)
    assert "mentions" not in told(say(task, "@lea?", tom))


def test_nobody_follows_the_call_of_an_agent(task: Task) -> None:
    made = add_comment(task.project, "@lea, approve it!", actor=Actor("run", "coder-1"), task=task)
    assert told(made) == {"comment": made.pk}


def test_a_comment_says_something_and_is_bounded(task: Task, tom: User) -> None:
    for body, code in ((" \n ", "text_missing"), ("x" * (BODY_MAX + 1), "text_too_long")):
        with pytest.raises(Refused) as refused:
            say(task, body, tom)
        assert refused.value.code == code
    assert not Comment.objects.exists()


def test_an_answer_to_an_answer_stands_in_the_thread_of_the_first(task: Task, tom: User, lea: User) -> None:
    first = say(task, "Why?", tom)
    answer = say(task, "Because.", lea, parent=first)
    other = say(task, "Besides.", lea)
    last = say(task, "Thanks.", tom, parent=answer)
    threads = Discussion(task.project, tom, task).threads
    assert [thread.comments for thread in threads] == [[first, answer, last], [other]]


def test_a_thread_is_settled_once_and_may_be_opened_again(task: Task, tom: User) -> None:
    comment = say(task, "Why?", tom)
    settle(comment, actor=Actor.person(tom))
    with pytest.raises(Refused, match="resolved already"):
        settle(comment, actor=Actor.person(tom))
    settle(comment, actor=Actor.person(tom), resolved=False)
    kinds = Event.objects.filter(data__comment=comment.pk).order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["commented", "comment_resolved", "comment_reopened"]


def test_a_form_says_answers_and_settles(client: Client, task: Task, tom: User, lea: User) -> None:
    client.force_login(tom)
    opening.stop_for_help(task, "blocked", "Who has the key?", detail="None is set.")
    dispute = task.disputes.get()
    url = f"/tasks/{task.ref}/comments/"
    response = client.post(url, {"body": "Ask @lea.\r\n\r\n- now", "next": "/queue/?q=x"})
    comment = Comment.objects.get()
    assert (comment.body, comment.by_label, comment.by_user) == ("Ask @lea.\n\n- now", "Tom Tran", tom)
    assert response["Location"] == f"/queue/?q=x#comment-{comment.pk}"
    assert told(comment) == {"comment": comment.pk, "dispute": dispute.ref, "mentions": [lea.pk]}
    response = client.post(url, {"body": "Done.", "parent": comment.pk, "next": "//evil.example/"})
    assert response["Location"].startswith(f"/queue/{dispute.ref}/#comment-")
    assert comment.replies.get().body == "Done."
    client.post(f"/comments/{comment.pk}/settle/", {"resolved": "yes"})
    comment.refresh_from_db()
    assert comment.status == "resolved"
    client.post(f"/comments/{comment.pk}/settle/", {"resolved": "no"})
    comment.refresh_from_db()
    assert comment.status == "open"


def test_what_is_refused_is_shown_again(client: Client, task: Task, tom: User) -> None:
    client.force_login(tom)
    url = f"/tasks/{task.ref}/comments/"
    response = client.post(url, {"body": "y" * (BODY_MAX + 1)})
    assert response.status_code == 422
    assert "y" * (BODY_MAX + 1) in response.content.decode()
    for parent in ("999999", "x", "9" * 30):
        response = client.post(url, {"body": "Kept <words>", "parent": parent})
        assert response.status_code == 404
        assert "Kept &lt;words&gt;" in response.content.decode()
    assert not Comment.objects.exists()


def test_viewers_read_and_outsiders_learn_nothing(
    client: Client, task: Task, tom: User, vera: User, otto: User
) -> None:
    comment = say(task, "Why?", tom)
    urls = [f"/tasks/{task.ref}/comments/", "/projects/ledger/comments/", f"/comments/{comment.pk}/settle/"]
    for user, status in ((vera, 403), (otto, 404)):
        client.force_login(user)
        for url in urls:
            assert client.post(url).status_code == status
            assert client.post(url, {"body": "No"}).status_code == status
            assert client.get(url).status_code == 405
    assert Comment.objects.get() == comment
    client.force_login(tom)
    for url in ("/tasks/ledger-x/comments/", "/tasks/ledger-999999999999999999999/comments/"):
        assert client.post(url, {"body": "No"}).status_code == 404


def test_a_project_has_comments_of_its_own(client: Client, ledger: Project, tom: User) -> None:
    client.force_login(tom)
    client.post("/projects/ledger/comments/", {"body": "It stalls."})
    comment = Comment.objects.get()
    assert (comment.project, comment.task) == (ledger, None)
    assert [thread.first for thread in Discussion(ledger, tom).threads] == [comment]


def test_markdown_is_set_and_does_nothing() -> None:
    html = as_html(
        "# Look\n\n**Bold** `code` <script>alert(1)</script>\n\n[go](javascript:alert(1)) "
        "[out](https://example.org/) ![pixel](https://example.org/p.png)\n\n<img src=x onerror=alert(1)>"
    )
    assert "<h4>Look</h4>" in html
    assert "<strong>Bold</strong> <code>code</code> &lt;script&gt;" in html
    assert "<img" not in html
    assert "<script" not in html
    assert 'href="javascript' not in html
    assert '<a href="https://example.org/" rel="nofollow noopener noreferrer">out</a>' in html


def test_what_is_no_prose_is_shown_as_it_stands() -> None:
    for text in ("a" * 3_000, "[" * 400, "x\n" * LENGTH_MAX):
        assert as_html(text).startswith(f"<p>{text[:100]}")
        assert len(as_html(text)) <= LENGTH_MAX + 10
    assert "\u202e" not in as_html("a\u202eb")


def test_a_page_of_many_comments_costs_one_query(
    task: Task, tom: User, django_assert_num_queries: Any
) -> None:
    first = say(task, "Why?", tom)
    for number in range(40):
        say(task, f"Answer {number}", tom, parent=first)
    create_user("ana")
    with django_assert_num_queries(1):
        discussion = Discussion(task.project, tom, task)
        assert len(discussion.threads[0].comments) == 41
        assert discussion.count == "41"
