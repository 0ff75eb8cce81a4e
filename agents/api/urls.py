from django.urls import path

from agents.api import views

urlpatterns = [
    path("me/", views.MeView.as_view()),
    path("tasks/<str:ref>/submit/", views.submit),
    path("tasks/<str:ref>/approve/", views.approve),
    path("tasks/<str:ref>/reject/", views.reject),
    path("tasks/<str:ref>/dispute/", views.dispute),
    path("tasks/<str:ref>/log/", views.log),
    path("tasks/<str:ref>/blocked/", views.blocked),
    path("tasks/<str:ref>/comment/", views.comment),
]
