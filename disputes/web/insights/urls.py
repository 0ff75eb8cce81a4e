"""The paths of the insights: how the team rules, in figures."""

from django.urls import path

from disputes.web.insights import views

urlpatterns = [
    path("", views.page, name="insights"),
    path("figures.csv", views.as_csv, name="insights-csv"),
    path("figures.json", views.as_json, name="insights-json"),
]
