"""The addresses of the queue."""

from django.urls import path

from disputes import queue_views
from disputes.pages.queue import TABS

MINE, TEAM, WAITING, SETTLED = TABS

urlpatterns = [
    path("", queue_views.queue_page, {"tab": MINE}, name=MINE.name),
    path("team/", queue_views.queue_page, {"tab": TEAM}, name=TEAM.name),
    path("waiting/", queue_views.queue_page, {"tab": WAITING}, name=WAITING.name),
    path("settled/", queue_views.queue_page, {"tab": SETTLED}, name=SETTLED.name),
]
