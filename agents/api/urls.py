from django.urls import path

from agents.api import views
from agents.pull import pull_views

urlpatterns = [
    path("me/", views.MeView.as_view()),
    path("pull/claim/", pull_views.ClaimView.as_view()),
    path("pull/runs/<int:pk>/", pull_views.WorkView.as_view()),
    path("pull/runs/<int:pk>/beat/", pull_views.BeatView.as_view()),
    path("pull/runs/<int:pk>/base/", pull_views.BaseView.as_view()),
    path("pull/runs/<int:pk>/bundle/", pull_views.BundleView.as_view()),
    path("pull/runs/<int:pk>/release/", pull_views.ReleaseView.as_view()),
    *(path(f"tasks/<str:ref>/{name}/", view) for name, view in views.HAND_INS.items()),
]
