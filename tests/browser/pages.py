"""Every kind of page of the site, as addresses of rows that exist."""

from collections.abc import Iterator

from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from agents.models import Run
from disputes.models import Amendment, Bulk, Channel, Dispute
from steroidsweb import urls  # noqa: F401  (with the addresses the admins are loaded)
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
    """Our own pages: queue, disputes of each kind, tasks, runs, projects, figures, channels."""
    task, project = scene.task.ref, scene.ledger.slug
    mine = Dispute.objects.filter(project=scene.ledger)
    filled = scene.ledger.tasks.filter(runs__isnull=False).first()
    return [
        "/queue/", "/queue/team/", "/queue/waiting/", "/queue/snoozed/", "/queue/settled/",
        *(f"/queue/{dispute.ref}/" for dispute in mine),
        f"/queue/{scene.dispute.ref}/diff/", f"/queue/{scene.dispute.ref}/holders/",
        *(f"/queue/bulk/{bulk.pk}/" for bulk in Bulk.objects.all()),
        *(f"/queue/amendments/{amendment.pk}/" for amendment in Amendment.objects.all()),
        f"/tasks/{task}/", f"/tasks/{task}/events/", f"/tasks/{task}/diff/", f"/tasks/{task}/rollback/",
        *([f"/tasks/{filled.ref}/"] if filled else []),
        "/runs/", *(f"/runs/{run.pk}/" for run in Run.objects.all()),
        f"/projects/{project}/", f"/projects/{project}/setup/", f"/projects/{project}/tasks/import/",
        f"/projects/{project}/rounds/import/",
        f"/projects/{project}/board/", f"/projects/{project}/end/",
        f"/notifications/projects/{project}/",
        "/insights/", f"/insights/?project={project}",
        "/notifications/", "/notifications/add/", "/notifications/deliveries/",
        *(f"/notifications/{channel.pk}/" for channel in Channel.objects.all()),
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
