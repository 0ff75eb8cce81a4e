from django.urls import path

from disputes.notifications import views

VERBS = ("test", "pause", "resume", "delete", "secret")

urlpatterns = [
    path("", views.overview, name="notifications"),
    path("add/", views.add, name="notifications-add"),
    path("count/", views.count, name="notifications-count"),
    path("deliveries/", views.deliveries, name="notifications-deliveries"),
    path("deliveries/<int:pk>/again/", views.again, name="notifications-again"),
    path("projects/<slug:slug>/", views.of_project, name="notifications-project"),
    path("<int:pk>/", views.edit, name="notifications-edit"),
    *(path(f"<int:pk>/{verb}/", views.act, {"verb": verb}, name=f"notifications-{verb}") for verb in VERBS),
]
