from django.urls import path

from agents.api import pulls, views

urlpatterns = [
    path("me/", views.MeView.as_view()),
    path("pull/claim/", pulls.ClaimView.as_view()),
    path("pull/runs/<int:pk>/", pulls.WorkView.as_view()),
    path("pull/runs/<int:pk>/beat/", pulls.BeatView.as_view()),
    path("pull/runs/<int:pk>/base/", pulls.BaseView.as_view()),
    path("pull/runs/<int:pk>/bundle/", pulls.BundleView.as_view()),
    path("pull/runs/<int:pk>/release/", pulls.ReleaseView.as_view()),
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
