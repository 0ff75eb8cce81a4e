"""Every kind of page of the site, as addresses of rows that exist."""

from collections.abc import Iterator

from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from disputes.models import Dispute
from tests.browser.scene import Scene
from tests.filling import fill

# Of the site as a whole. A page of ours that is missing here is found by the table of who may open what.
SITE = ("/admin/", "/admin/password_change/", "/admin/tasks/", "/api/docs/")


def fill_scene(scene: Scene) -> None:
    """A row of every model in the scene's project; Lea may see all of them."""
    lea = User.objects.get(username="lea")
    fill(scene.ledger, 1, lea)
    User.objects.filter(pk=lea.pk).update(is_superuser=True)


def our_pages(scene: Scene) -> list[str]:
    """Our own pages: queue, disputes of each kind, tasks, the end of a project."""
    task, project = scene.task.ref, scene.ledger.slug
    kinds = Dispute.objects.filter(project=scene.ledger).values_list("pk", flat=True)
    return [
        "/queue/", "/queue/team/", "/queue/waiting/", "/queue/settled/",
        *(f"/queue/D-{pk}/" for pk in kinds),
        f"/queue/{scene.dispute.ref}/diff/",
        f"/tasks/{task}/rollback/",
        f"/projects/{project}/end/",
    ]  # fmt: skip


def admin_pages() -> Iterator[str]:
    """Each model's list and the page of its newest row, and one form to add something."""
    yield "/admin/tasks/task/add/"
    for model in sorted(admin.site._registry, key=lambda model: model._meta.label):
        base = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{base}_changelist")
        if newest := model._default_manager.order_by("-pk").first():
            yield reverse(f"{base}_change", args=[newest.pk])


def every_page(scene: Scene) -> list[str]:
    """All of them; the scene must be filled."""
    return [*SITE, *our_pages(scene), *admin_pages()]
