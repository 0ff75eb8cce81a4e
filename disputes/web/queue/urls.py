"""The paths of the queue, and of the actions on its rows."""

from django.urls import path

from disputes.web.queue import bulk_views, triage_views, views
from disputes.web.queue.listing import MINE, SETTLED, SNOOZED, TEAM, WAITING

urlpatterns = [
    path("", views.queue_page, {"tab": MINE}, name=MINE.name),
    path("team/", views.queue_page, {"tab": TEAM}, name=TEAM.name),
    path("waiting/", views.queue_page, {"tab": WAITING}, name=WAITING.name),
    path("snoozed/", views.queue_page, {"tab": SNOOZED}, name=SNOOZED.name),
    path("settled/", views.queue_page, {"tab": SETTLED}, name=SETTLED.name),
    path("views/", views.save_view, name="view-save"),
    path("views/<int:pk>/delete/", views.delete_view, name="view-delete"),
    path("bulk/", bulk_views.preview, name="bulk"),
    path("bulk/apply/", bulk_views.apply, name="bulk-apply"),
    path("bulk/<int:pk>/", bulk_views.result, name="bulk-result"),
    path("bulk/<int:pk>/undo/", bulk_views.undo, name="bulk-undo"),
    path("D-<int:pk>/holders/", triage_views.holders_page, name="dispute-holders"),
    path("D-<int:pk>/claim/", triage_views.claim, name="dispute-claim"),
    path("D-<int:pk>/release/", triage_views.release, name="dispute-release"),
    path("D-<int:pk>/assign/", triage_views.assign, name="dispute-assign"),
    path("D-<int:pk>/follow/", triage_views.follow, name="dispute-follow"),
    path("D-<int:pk>/snooze/", triage_views.snooze, name="dispute-snooze"),
    path("D-<int:pk>/wake/", triage_views.wake, name="dispute-wake"),
]
