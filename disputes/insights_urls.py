"""How the team rules, in figures."""

from django.urls import path

from disputes import insights_views

urlpatterns = [
    path("", insights_views.page, name="insights"),
    path("figures.csv", insights_views.as_csv, name="insights-csv"),
    path("figures.json", insights_views.as_json, name="insights-json"),
]
