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
    path("tasks/<str:ref>/submit/", views.submit),
    path("tasks/<str:ref>/approve/", views.approve),
    path("tasks/<str:ref>/reject/", views.reject),
    path("tasks/<str:ref>/dispute/", views.dispute),
    path("tasks/<str:ref>/log/", views.log),
    path("tasks/<str:ref>/blocked/", views.blocked),
    path("tasks/<str:ref>/escalate/", views.escalate),
    path("tasks/<str:ref>/comment/", views.comment),
    path("tasks/<str:ref>/opinion/", views.opinion),
]
