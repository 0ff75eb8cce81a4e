from django.urls import path

from disputes.records import FILES
from disputes.web.dispute import amendment_views, finding_views, ruling_views, views
from disputes.web.queue import urls
from disputes.web.work import downloads

urlpatterns = [
    *urls.urlpatterns,
    path("D-<int:pk>/", views.dispute_page, name="dispute"),
    path("d-<int:pk>/", views.dispute_page),  # as people type it
    path("D-<int:pk>/diff/", views.diff_page, name="dispute-diff"),
    path("D-<int:pk>/preview/", views.preview, name="dispute-preview"),
    path("D-<int:pk>/decide/", ruling_views.decide, name="dispute-decide"),
    path("D-<int:pk>/ask/", finding_views.ask_opinion, name="dispute-ask"),
    path("D-<int:pk>/severity/", finding_views.change_severity, name="dispute-severity"),
    path("D-<int:pk>/same/", finding_views.confirm_same, name="dispute-same"),
    path("D-<int:pk>/synthesis/", finding_views.propose, name="dispute-synthesis"),
    path("decisions/<int:pk>/undo/", ruling_views.undo, name="decision-undo"),
    path("decisions/<int:pk>/reopen/", ruling_views.reopen, name="decision-reopen"),
    path("decisions/<int:pk>/amend/", amendment_views.ask, name="decision-amend"),
    path("amendments/<int:pk>/", amendment_views.amendment_page, name="amendment"),
    *(
        path(f"amendments/<int:pk>/{verb}/", amendment_views.settle, {"verb": verb}, name=f"amendment-{verb}")
        for verb in ("approve", "reword", "drop")
    ),
    *(path(f"D-<int:pk>/{f}", downloads.of_dispute, {"file": f}, name=f"dispute-{f}") for f in FILES),
    *(
        path(f"records/<slug:slug>/{f}", downloads.of_project, {"file": f}, name=f"project-{f}")
        for f in FILES
    ),
]
